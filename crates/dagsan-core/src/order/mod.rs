//! Order engines.
use crate::event::Construct;
pub(crate) fn names_supporting(_construct: Construct) -> String { String::new() }
pub(crate) fn names_any_order() -> String { String::new() }
pub(crate) fn names() -> String { String::new() }
