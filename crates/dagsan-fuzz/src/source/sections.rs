//! Random programs whose behaviour depends on the order of their isolated sections and on nothing else.
//!
//! Values that come from races would make the racy locations of a program depend on how a run happens to
//! order plain code, which no exploration of sections enumerates. So variables `s…` are written in
//! sections only, and only what sections read from them decides anything; variables `p…` are written
//! everywhere, and their values are never used.

use fastrand::Rng;

const SECTION_CELLS: u32 = 3;
const PLAIN_CELLS: u32 = 4;
const PROMISES: u32 = 2;

struct Generator {
    rng: Rng,
    /// How many sections may still be written.
    sections: u32,
    /// The promises that nobody sets yet.
    unset: Vec<u32>,
    out: String,
}

/// A random program, the same for the same seed.
pub(super) fn generate(seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let sections = rng.u32(2..7);
    let mut generator = Generator { rng, sections, unset: (0..PROMISES).collect(), out: String::new() };
    for cell in 0..SECTION_CELLS {
        generator.line(0, &format!("shared s{cell} = 0;"));
    }
    for cell in 0..PLAIN_CELLS {
        generator.line(0, &format!("shared p{cell} = 0;"));
    }
    for promise in 0..PROMISES {
        generator.line(0, &format!("promise q{promise};"));
    }
    generator.line(0, "proc main() {");
    generator.line(1, "var m = 0;");
    for _ in 0..generator.rng.u32(1..3) {
        generator.phase();
    }
    generator.body(1, 1);
    generator.line(0, "}");
    generator.out
}

impl Generator {
    fn line(&mut self, indent: usize, text: &str) {
        self.out.push_str(&"    ".repeat(indent));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Some tasks with sections, joined; then what the sections left behind decides.
    fn phase(&mut self) {
        self.line(1, "finish {");
        for _ in 0..self.rng.u32(1..4) {
            self.line(2, "async {");
            self.body(3, 2);
            self.line(2, "}");
        }
        self.body(2, 2);
        self.line(1, "}");
        for _ in 0..self.rng.u32(0..3) {
            let (cell, value) = (self.rng.u32(0..SECTION_CELLS), self.rng.u32(0..5));
            if self.rng.bool() {
                // What is remembered in a local only.
                self.line(1, &format!("m = s{cell}; s{cell} = 0;"));
                continue;
            }
            let racy = self.rng.u32(0..PLAIN_CELLS);
            let race = format!("finish {{ async {{ p{racy} = 1; }} p{racy} = 2; }}");
            self.line(1, &format!("if s{cell} == {value} || m == {value} {{ {race} }}"));
        }
    }

    fn body(&mut self, indent: usize, depth: u32) {
        self.line(indent, "var v = 0;");
        for _ in 0..self.rng.u32(1..5) {
            self.stmt(indent, depth);
        }
    }

    fn block(&mut self, indent: usize, head: &str, depth: u32) {
        self.line(indent, head);
        for _ in 0..self.rng.u32(1..3) {
            self.stmt(indent + 1, depth);
        }
        self.line(indent, "}");
    }

    fn stmt(&mut self, indent: usize, depth: u32) {
        match self.rng.u32(0..12) {
            0..3 => self.plain(indent),
            3..7 if self.sections > 0 => self.section(indent),
            7 | 8 if depth > 0 => {
                let head = format!("if v == {} {{", self.rng.u32(0..3));
                self.block(indent, &head, depth - 1);
            }
            9 if depth > 0 => {
                self.line(indent, "async {");
                self.body(indent + 1, depth - 1);
                self.line(indent, "}");
            }
            10 if depth > 0 => self.block(indent, "finish {", depth - 1),
            11 => self.promise(indent),
            _ => self.plain(indent),
        }
    }

    fn plain(&mut self, indent: usize) {
        if self.rng.u32(0..4) == 0 {
            let cell = self.rng.u32(0..SECTION_CELLS);
            return self.line(indent, &format!("{{ let unused = s{cell}; }}"));
        }
        let cell = self.rng.u32(0..PLAIN_CELLS);
        let text =
            if self.rng.bool() { format!("p{cell} = 1;") } else { format!("{{ let unused = p{cell}; }}") };
        self.line(indent, &text);
    }

    /// A get that may come before its set, or without one: tasks wait, or wait for ever.
    fn promise(&mut self, indent: usize) {
        let promise = self.rng.u32(0..PROMISES);
        if let Some(place) = self.unset.iter().position(|&unset| unset == promise) {
            self.unset.swap_remove(place);
            self.line(indent, &format!("set q{promise};"));
        } else {
            self.line(indent, &format!("get q{promise};"));
        }
    }

    fn section(&mut self, indent: usize) {
        self.sections -= 1;
        self.line(indent, "isolated {");
        for _ in 0..self.rng.u32(1..3) {
            let (cell, other) = (self.rng.u32(0..SECTION_CELLS), self.rng.u32(0..SECTION_CELLS));
            let value = self.rng.u32(0..3);
            match self.rng.u32(0..10) {
                0 => self.line(indent + 1, &format!("s{cell} = {value};")),
                1 => self.line(indent + 1, &format!("v = s{cell};")),
                2 | 3 => self.line(indent + 1, &format!("s{cell} = s{cell} + {value};")),
                4 => self.line(indent + 1, &format!("if s{cell} < {value} {{ s{cell} = {value}; }}")),
                5 => self.line(indent + 1, &format!("if s{cell} > {value} {{ s{cell} = {value}; }}")),
                6 => self.line(indent + 1, &format!("s{cell} = s{cell} * {value};")),
                7 | 8 => self.line(indent + 1, &format!("if s{cell} == {value} {{ s{other} = {value}; }}")),
                _ => self.plain(indent + 1),
            }
        }
        self.line(indent, "}");
    }
}
