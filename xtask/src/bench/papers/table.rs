//! Tables in Markdown, with columns of equal width so that they can be read as they are.

/// Collects rows, and prints them at the end. The first column is text, the others are figures.
#[derive(Debug)]
pub(super) struct Printer {
    rows: Vec<Vec<String>>,
}

impl Printer {
    /// A table with these columns.
    pub(super) fn new(heads: &[&str]) -> Printer {
        Printer { rows: vec![heads.iter().map(|&head| head.to_owned()).collect()] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    /// Prints all.
    pub(super) fn print(&self) {
        println!("{}", self.text());
    }

    fn text(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let cell =
                    if column == 0 { format!("| {cell:<width$} ") } else { format!("| {cell:>width$} ") };
                text.push_str(&cell);
            }
            text.push_str("|\n");
            if number == 0 {
                for (column, &width) in widths.iter().enumerate() {
                    text.push_str(&format!(
                        "|{}{}",
                        "-".repeat(width + 1),
                        if column == 0 { "-" } else { ":" }
                    ));
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

/// Digits enough for a time in milliseconds.
pub(super) fn ms(time: f64) -> String {
    match time {
        t if t < 1.0 => format!("{t:.4}"),
        t if t < 100.0 => format!("{t:.2}"),
        t => format!("{t:.0}"),
    }
}

/// A mark of the papers' tables.
pub(super) fn mark(yes: bool) -> String {
    if yes { "Y" } else { "-" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut printer = Printer::new(&["name", "n"]);
        printer.row(vec!["a".to_owned(), "1,000".to_owned()]);
        assert_eq!(printer.text(), "| name |     n |\n|------|------:|\n| a    | 1,000 |\n");
    }
}
