//! Assembly whose accesses are known: loads and stores that pass by the caches.
//!
//! The standard library writes them so (`_mm_stream_ps` and its kin), one instruction each, in this form and no other:
//!
//! ```text
//!   movntdq [${0:q}],${1:x}              vmovntdqa ${0:t}, [${1:q}]
//!           │        └ a register, by its width       └ the pointer: the first argument, behind the result
//!           └ the pointer: the first argument
//! ```
//!
//! What is written in another way is not guessed.

use crate::model::Kind;

/// What an instruction accesses at its first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub kind: Kind,
    pub bytes: u64,
}

/// The access of a text; none if it is not known.
pub fn access(text: &str) -> Option<Access> {
    let (instruction, operands) = text.trim().split_once(' ')?;
    let operands = operands.replace(' ', "");
    let (kind, register) = match instruction.strip_prefix('v').unwrap_or(instruction) {
        "movntdqa" => (Kind::Read, operands.strip_prefix("${0:")?.strip_suffix("},[${1:q}]")?),
        "movnti" | "movntdq" | "movntpd" | "movntps" => {
            (Kind::Write, operands.strip_prefix("[${0:q}],${1:")?.strip_suffix('}')?)
        }
        _ => return None,
    };
    let bytes = match register {
        "k" => 4,
        "q" => 8,
        "x" => 16,
        "t" => 32,
        "g" => 64,
        _ => return None,
    };
    Some(Access { kind, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_and_stores_past_the_caches_are_known() {
        for (text, kind, bytes) in [
            ("movnti [${0:q}],${1:k}", Kind::Write, 4),
            ("movnti [${0:q}],${1:q}", Kind::Write, 8),
            ("movntpd [${0:q}],${1:x}", Kind::Write, 16),
            ("vmovntdq [${0:q}],${1:t}", Kind::Write, 32),
            ("vmovntps [${0:q}], ${1:g}", Kind::Write, 64),
            ("movntdqa ${0:x}, [${1:q}]", Kind::Read, 16),
            ("vmovntdqa ${0:g}, [${1:q}]", Kind::Read, 64),
        ] {
            assert_eq!(access(text), Some(Access { kind, bytes }), "{text}");
        }
    }

    #[test]
    fn others_are_not_guessed() {
        for text in [
            "",
            "nop",
            "mov [${0:q}],${1:q}",
            "movnti [${0:q} + 8],${1:q}",
            "movnti [${1:q}],${0:q}",
            "movnti [${0:q}],${1:q}\nmov [${0:q}],${1:q}",
            "movnti [${0:q}],${1:b}",
            "movntdqa ${0:x}, [${1:q} + 16]",
            "movntdqa ${0:x}, [${2:q}]",
        ] {
            assert_eq!(access(text), None, "{text}");
        }
    }
}
