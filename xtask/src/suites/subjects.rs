//! Which crates `cargo xtask rayon-crates` and `thread-crates` test, and which of their tests.

/// A crate, and the tests of it that use rayon or threads.
pub struct Subject {
    pub name: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    /// For cargo.
    pub arguments: &'static [&'static str],
    /// Only tests with these in their names, if there are any.
    pub filters: &'static [&'static str],
    /// Tests that are left out, and why.
    pub left_out: &'static [(&'static str, &'static str)],
}

const PLAIN: Subject = Subject {
    name: "",
    version: "",
    kind: "",
    arguments: &["--lib", "--tests"],
    filters: &[],
    left_out: &[],
};

pub const RAYON: [Subject; 8] = [
    Subject {
        name: "indexmap",
        version: "2.14.2",
        kind: "ordered maps",
        arguments: &["--features", "rayon", "--lib", "--tests"],
        ..PLAIN
    },
    Subject {
        name: "petgraph",
        version: "0.8.3",
        kind: "graphs",
        arguments: &["--features", "rayon", "--test", "page_rank", "--test", "graphmap", "--test", "johnson"],
        ..PLAIN
    },
    Subject {
        name: "dashmap",
        version: "6.2.1",
        kind: "concurrent maps",
        arguments: &["--features", "rayon", "--lib"],
        ..PLAIN
    },
    Subject {
        name: "hashbrown",
        version: "0.17.1",
        kind: "hashing",
        arguments: &["--features", "rayon", "--test", "rayon"],
        ..PLAIN
    },
    Subject {
        name: "jwalk",
        version: "0.9.0",
        kind: "directories",
        arguments: &["--test", "integration", "--test", "relative_paths"],
        ..PLAIN
    },
    Subject { name: "mtpng", version: "0.4.1", kind: "images, compression", arguments: &["--lib"], ..PLAIN },
    Subject {
        name: "nalgebra",
        version: "0.35.0",
        kind: "linear algebra",
        arguments: &["--features", "debug,compare,rand,macros,rayon", "--test", "lib"],
        filters: &["core::matrix"],
        ..PLAIN
    },
    Subject {
        name: "vtext",
        version: "0.2.0",
        kind: "text",
        arguments: &["--features", "rayon", "--lib"],
        ..PLAIN
    },
];

pub const THREADS: [Subject; 7] = [
    Subject {
        name: "crossbeam-deque",
        version: "0.8.8",
        kind: "work-stealing queues",
        arguments: &["--tests"],
        left_out: &[
            (
                "stress",
                "a race that its authors know, of `read_volatile` and `write_volatile` in `Buffer`: see docs/threads.md",
            ),
            ("no_starvation", "the same, and threads that spin: no end within a minute"),
        ],
        ..PLAIN
    },
    Subject {
        name: "parking_lot",
        version: "0.12.5",
        kind: "locks",
        left_out: &[("webkit_queue_test", "a million messages each: no end within a minute")],
        ..PLAIN
    },
    Subject {
        name: "parking_lot_core",
        version: "0.9.12",
        kind: "waiting lines",
        left_out: &[("unpark_all", "the main thread spins until others wait: no end within a minute")],
        ..PLAIN
    },
    Subject {
        name: "threadpool",
        version: "1.8.1",
        kind: "thread pools",
        left_out: &[
            (
                "test_massive_task_creation",
                "4.2 million jobs, a minute plainly; the detector's memory grows with each",
            ),
            ("test_join_wavesurfer", "measures by seconds who is woken when, and fails: see docs/threads.md"),
        ],
        ..PLAIN
    },
    Subject { name: "scoped_threadpool", version: "0.1.9", kind: "thread pools", ..PLAIN },
    Subject {
        name: "bus",
        version: "2.4.1",
        kind: "broadcast channels",
        left_out: &[("aggressive_iteration", "1,000 rounds of threads that spin: no end within ten minutes")],
        ..PLAIN
    },
    Subject {
        name: "thread_local",
        version: "1.1.10",
        kind: "thread-local variables",
        arguments: &["--lib"],
        ..PLAIN
    },
];
