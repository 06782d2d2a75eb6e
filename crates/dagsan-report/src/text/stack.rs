//! Call stacks, as notes below a race.
//!
//! The place of an access is in the user's code; its innermost frames may be in a library: the first of these is shown, and the
//! others are counted. Further out, libraries are only mentioned: it is by them that tasks run.

use crate::model::{Frame, Side};

/// So many frames of a stack are shown.
const SHOWN_FRAMES: usize = 24;

/// How access number `number` came to be, if its place does not say it all.
pub(super) fn note(number: u8, side: &Side) -> Option<String> {
    let stack = &side.detail.stack;
    // What is around the user's code is the runtime of the language and of the tasks.
    let users = stack.iter().rposition(|frame| !frame.library);
    let mut rest = &stack[..users.map_or(stack.len(), |last| last + 1)];
    let shown = rest;
    let (mut lines, mut in_users_code) = (Vec::new(), false);
    while let Some((frame, others)) = rest.split_first() {
        if lines.len() == SHOWN_FRAMES {
            lines.push(format!("and {} more", rest.len()));
            break;
        }
        let folded = others.iter().take_while(|other| frame.library && other.library).count();
        if frame.library && in_users_code {
            lines.push("… through libraries".to_owned());
        } else {
            let before = (shown.len() - rest.len()).checked_sub(1).map(|at| &stack[at]);
            lines.push(line(frame, before));
            match folded {
                0 => {}
                1 => lines.push("… 1 more of libraries".to_owned()),
                _ => lines.push(format!("… {folded} more of libraries")),
            }
        }
        in_users_code |= !frame.library;
        rest = &others[folded..];
    }
    if !side.detail.complete && !lines.is_empty() {
        lines.push("… callers are not known".to_owned());
    }
    (stack.len() > 1 || side.detail.complete && !lines.is_empty())
        .then(|| format!("call stack of ({number}):\n  {}", lines.join("\n  ")))
}

/// `in f, src/main.rs:3:5`; `before` is the frame that it has called.
fn line(frame: &Frame, before: Option<&Frame>) -> String {
    let relation = match before {
        None => "in",
        Some(before) if before.inlined => "inlined into",
        Some(_) => "called from",
    };
    match &frame.at {
        Some((file, line, column)) => format!("{relation} {}, {file}:{line}:{column}", frame.function),
        None => format!("{relation} {}", frame.function),
    }
}
