//! `dagsan check` from end to end: every exit code, every format, bad input, and the messages.
//!
//! Exit code 70 cannot be had from outside without a fault; `check.rs` and `exit.rs` test it inside.

mod accepted;
mod corpus;
mod directory;
mod eliminations;
mod expectations;
mod explored;
mod formats;
mod inputs;
#[cfg(unix)]
mod interrupt;
mod limits;
mod manual;
mod programs;
mod replay;
mod reports;
#[path = "../schema.rs"]
mod schema;
mod verdicts;
mod witness;

const MISSING_GET: &str = "\
// expect: race a[1]
shared a[4];

proc main() {
    future f = { a[0] = 1; return 1; };
    future g = { a[1] = 2; return 2; };
    let u = get f;
    print \"sum\", u;
    a[2] = a[0] + a[1];
    get g;
}
";
const FREE: &str = "// expect: race-free\nshared x;\nproc main() { finish { async { x = 1; } } print x; }\n";
const DEADLOCK: &str = "// expect: deadlock\nproc main() {\n    promise p;\n    async { get p; }\n}\n";
const FAILING: &str = "// expect: error division by zero\nshared x;\nproc main() {\n    print 1 / x;\n}\n";
const BAD: &str = "// expect: error expected int\nproc main() {\n    y = 1;\n    let z = true + 1;\n}\n";
const ISOLATED: &str =
    "// expect: race-free\nshared n;\nproc main() { forall i in 0..3 { isolated { n = n + i; } } }\n";
