//! The structure of a part of a program, beside the rest, of which it is not told.

use super::Structure;

impl Structure {
    /// Beside a task that does not end: never quiescent.
    pub(crate) fn beside_another() -> Structure {
        Structure { open: 2, ..Structure::new() }
    }
}
