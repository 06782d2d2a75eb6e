//! How much a program may use before it is stopped.

/// The limits of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many operations it may execute.
    pub steps: u64,
    /// How many 64-bit words it may use for shared memory; tasks and promises are bounded by it as well.
    pub words: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 20_000_000_000, words: 1 << 28 }
    }
}
