//! Random task programs, and the judge of order engines.
