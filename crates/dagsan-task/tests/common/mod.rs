//! Programs with one worker, which is the serial executor, and with several.

use dagsan_task::with_workers;

/// Runs the program on one, two and four workers.
pub fn each(program: impl Fn()) {
    for workers in [1, 2, 4] {
        with_workers(workers, &program);
    }
}

/// Runs the program serially: what it checks is the order in which things happen then.
pub fn serially(program: impl Fn()) {
    with_workers(1, program);
}
