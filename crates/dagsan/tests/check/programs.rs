//! Programs whose verdict depends on the order of isolated sections, or on the choices of ewait.

/// Only if the second section comes first does its task write `x`.
pub const HIDDEN: &str = "\
// expect: race x
shared turn;
shared x;

proc main() {
    finish {
        async { isolated { turn = 1; } }
        async {
            var first = false;
            isolated { first = turn == 0; }
            if first { x = 1; }
        }
        x = 2;
    }
}
";
/// The order of the sections orders the writes of `x` as well, if the task is first.
pub const ORDER: &str = "\
// expect: race x
shared lock;
shared x;

proc main() {
    async { x = 1; isolated { lock = lock * 2; } }
    isolated { lock = lock + 1; }
    x = 2;
}
";
/// The ewait takes `slow` first; if it takes `fast`, nobody has waited for the write of `x`.
pub const EWAIT: &str = "\
// expect: race x
shared x;
shared y;

proc slow() { x = 1; return 1; }
proc fast() { y = 1; return 2; }

proc main() {
    region r;
    post r <- slow();
    post r <- fast();
    ewait r;
    print x;
    await r;
}
";
/// Two sections that do not commute, and no race in any order.
pub const DEPENDENT: &str = "\
// expect: race-free
shared n = 1;
proc main() {
    finish {
        async { isolated { n = n + 1; } }
        async { isolated { n = n * 2; } }
    }
    print n;
}
";
/// Two sections that do not commute, and a race in every order.
pub const ALWAYS: &str = "\
// expect: race x
shared n = 1;
shared x;
proc main() {
    async { x = 1; }
    finish {
        async { isolated { n = n + 1; } }
        async { isolated { n = n * 2; } }
    }
    x = n;
}
";
/// (1 + 1) * 2 is 4, 1 * 2 + 1 is not.
pub const ASSERTION: &str = "\
// expect: error assertion failed
shared n = 1;
proc main() {
    finish {
        async { isolated { n = n + 1; } }
        async { isolated { n = n * 2; } }
    }
    assert n == 4;
}
";
/// Nobody sets the promise if the second section comes first.
pub const NEVER_SET: &str = "\
// expect: deadlock
shared n;
proc main() {
    promise p;
    finish {
        async { isolated { if n == 0 { set p; } } }
        async { isolated { n = 1; } }
    }
    get p;
}
";
/// A race without any choice of schedules.
pub const PLAIN: &str = "\
// expect: race x
shared x;
proc main() {
    finish {
        async { x = 1; }
        x = 2;
    }
    print x;
}
";
/// 18 sections that do not commute: far more orders than anybody can run.
pub const MANY: &str = "\
shared n = 1;
proc main() {
    forall i in 0..9 {
        isolated { n = (n * 2 + i) % 1000003; }
        isolated { n = (n * 3 + i) % 1000003; }
    }
}
";
