//! Lines and columns of byte offsets.

/// Where the lines of a text start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    text: String,
    starts: Vec<u32>,
}

impl Lines {
    /// The lines of `text`.
    pub fn new(text: &str) -> Lines {
        let after_breaks =
            text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at as u32 + 1);
        Lines { text: text.to_owned(), starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Line and column of a byte offset, from 1; columns count characters.
    pub fn position(&self, offset: u32) -> (u32, u32) {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line.saturating_sub(1)] as usize;
        let before = self.text.get(start..offset as usize).unwrap_or("");
        (line as u32, before.chars().count() as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let lines = Lines::new("ab\n§ c\n");
        assert_eq!(lines.position(0), (1, 1));
        assert_eq!(lines.position(3), (2, 1));
        assert_eq!(lines.position(6), (2, 3));
        assert_eq!(lines.position(8), (3, 1));
    }
}
