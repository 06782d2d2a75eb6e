//! A function as Rust.
//!
//! What is read first by the reference is read first here. Lengths of operations on ranges have a bit of the flags added that is
//! never set: the compiler cannot know that two of them are equal, and that what the first wrote is overwritten.

use std::fmt::Write as _;

use super::ast::{
    Atomic, Base, Bulk, Cond, Expr, Fold, Function, How, Iter, Loop, Masked, POINTER_COUNT, POINTERS, Place,
    Stmt, Value,
};

/// The names of what a function is called with.
const NUMBERS: [&str; 3] = ["n", "m", "k"];
const POINTER_NAMES: [&str; 3] = ["a", "b", "c"];
/// The first bit of the flags that is never set.
const UNSET: usize = 40;

/// The text of a function of that name.
pub fn write(function: &Function, name: &str) -> String {
    let (hash, sum) = if function.hash_outside { ("o[0]", "o[1]") } else { ("h", "s") };
    let mut writer = Writer { text: String::new(), indent: 1, hash, sum, updates: Vec::new(), ranges: 0 };
    writer.text += "#[inline(never)]\n";
    if function.wide {
        writer.text += "#[target_feature(enable = \"avx2\")]\n";
    }
    _ = writeln!(
        writer.text,
        "pub unsafe fn {name}(t: usize, a: *mut u8, b: *mut u8, c: *mut u8, n: usize, m: usize, k: usize, flags: u64, \
         word: &AtomicU64, o: &mut [u64; 2]) {{"
    );
    if !function.hash_outside {
        writer.line("let [mut h, mut s] = *o;");
    }
    for (local, size) in function.locals.iter().enumerate() {
        writer.line(&format!("let mut l{local} = Local([0u8; {size}]);"));
    }
    writer.block(&function.body);
    if !function.hash_outside {
        writer.line("*o = [h, s];");
    }
    writer.text += "}\n";
    writer.text
}

struct Writer {
    text: String,
    indent: usize,
    /// Where the two parts of the hash are.
    hash: &'static str,
    sum: &'static str,
    /// What the loops around do at the end of a round.
    updates: Vec<String>,
    /// How many operations on ranges there were.
    ranges: usize,
}

impl Writer {
    fn line(&mut self, text: &str) {
        _ = writeln!(self.text, "{:1$}{text}", "", self.indent * 4);
    }

    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn indented(&mut self, block: &[Stmt]) {
        self.indent += 1;
        self.block(block);
        self.indent -= 1;
    }

    /// A body in a loop that ends its rounds so.
    fn body(&mut self, head: &str, first: &[String], body: &[Stmt], update: &str) {
        self.line(&format!("{head} {{"));
        self.updates.push(update.to_owned());
        self.indent += 1;
        first.iter().for_each(|line| self.line(line));
        self.block(body);
        if !update.is_empty() {
            self.line(update);
        }
        self.indent -= 1;
        self.updates.pop();
        self.line("}");
    }

    /// Leaves the function.
    fn leave(&self) -> String {
        if self.hash == "h" { "*o = [h, s]; return;".into() } else { "return;".into() }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let (hash, sum) = (self.hash, self.sum);
        match stmt {
            Stmt::Read { place, fold, passed } => {
                let load = self.load(place);
                let value = if *passed { format!("fold(pass({load}))") } else { format!("fold({load})") };
                let line = match fold {
                    Fold::Chain => format!("{hash} = mix({hash}, {value});"),
                    Fold::Sum(1) => format!("let v = {value}; {sum} = {sum}.wrapping_add(v);"),
                    Fold::Sum(times) => {
                        format!("let v = {value}; {sum} = {sum}.wrapping_add(v.wrapping_mul({times}));")
                    }
                };
                self.line(&line);
            }
            Stmt::Write { place, value } => {
                let value = match value {
                    Value::Hash(number) => format!("{hash} ^ {number}"),
                    Value::Of(expr) => format!("spread({})", self.expr(expr)),
                    Value::Changed(from) => {
                        format!("{}.wrapping_mul(3).wrapping_add(1)", self.summed(&self.load(from)))
                    }
                };
                self.store(place, &value);
            }
            Stmt::Update { place } => {
                let value = format!("fold({}).wrapping_mul(3) ^ {hash}", self.load(place));
                self.store(place, &value);
            }
            Stmt::Assign { to, from } => {
                let (to, from) = (self.pointer(to), self.pointer(from));
                self.line(&format!("let to = {to}; *to = *{from};"));
                self.line(&format!("{sum} = {sum}.wrapping_add(fold(*to));"));
            }
            // What is swapped twice is as it was: without the black box, the compiler leaves out both.
            Stmt::Swap { a, b } => {
                let (a, b) = (self.pointer(a), self.pointer(b));
                self.line(&format!("let x = ({a}, {b}); std::ptr::swap(x.0, x.1); std::hint::black_box(x);"));
            }
            Stmt::Bulk { what, to, from, ty, length } => {
                let length =
                    format!("({} + (flags >> {} & 1) as usize)", self.expr(length), UNSET + self.ranges);
                self.ranges = (self.ranges + 1) % 20;
                let (to, from, ty) = (self.base(to), self.base(from), ty.name());
                let line = self.bulk(*what, &to, &from, &ty, &length);
                self.line(&line);
            }
            Stmt::Masked { what, base, index, mask } => {
                let at = format!("{}.cast::<u32>().add({})", self.base(base), self.expr(index));
                let mask = self.expr(mask);
                let line = match what {
                    Masked::Load => format!("{hash} = mix({hash}, masked_load({at}, {mask}));"),
                    Masked::Store => format!("masked_store({at}, {mask}, {hash});"),
                    Masked::Gather => format!("{hash} = mix({hash}, gather({at}, {mask}));"),
                    Masked::Scatter => format!("scatter({at}, {mask}, {hash});"),
                    Masked::LoadAvx => format!("{hash} = mix({hash}, avx_load({at}, {mask}));"),
                    Masked::StoreAvx => format!("avx_store({at}, {mask}, {hash});"),
                    Masked::Expand => format!("{hash} = mix({hash}, expand({at}, {mask}));"),
                    Masked::Compress => format!("compress({at}, {mask}, {hash});"),
                };
                self.line(&line);
            }
            Stmt::If { cond, then, other } => {
                self.line(&format!("if {} {{", self.cond(cond)));
                self.indented(then);
                if !other.is_empty() {
                    self.line("} else {");
                    self.indented(other);
                }
                self.line("}");
            }
            Stmt::Loop { kind, body } => self.write_loop(kind, body),
            Stmt::Break(cond) => self.line(&format!("if {} {{ break; }}", self.cond(cond))),
            Stmt::Continue(cond) => {
                let update = self.updates.last().cloned().unwrap_or_default();
                self.line(&format!("if {} {{ {update} continue; }}", self.cond(cond)));
            }
            Stmt::Return(cond) => self.line(&format!("if {} {{ {} }}", self.cond(cond), self.leave())),
            Stmt::Fail { cond, called: true } => {
                self.line(&format!("fail_if({}, [{hash}, {sum}]);", self.cond(cond)));
            }
            Stmt::Fail { cond, called: false } => {
                self.line(&format!("if {} {{ fail([{hash}, {sum}]); }}", self.cond(cond)));
            }
            Stmt::Opaque => self.line("opaque();"),
            Stmt::Escape(base) => self.line(&format!("opaque_with({});", self.base(base))),
            Stmt::Show => self.line("show(t);"),
            Stmt::Event => self.line("event(t);"),
            Stmt::Task(body) => {
                self.line("in_task(t, &mut || unsafe {");
                self.indented(body);
                self.line("});");
            }
            Stmt::Atomic(atomic) => self.line(match atomic {
                Atomic::Relaxed => "word.fetch_add(1, Relaxed);",
                Atomic::Acquire => "word.fetch_add(1, Acquire);",
                Atomic::Release => "word.fetch_add(1, Release);",
                Atomic::AcqRel => "word.fetch_add(1, AcqRel);",
                Atomic::SeqCst => "word.fetch_add(1, SeqCst);",
                Atomic::LoadAcquire => "word.load(Acquire);",
                Atomic::LoadRelaxed => "word.load(Relaxed);",
                Atomic::StoreRelease => "word.store(5, Release);",
                Atomic::StoreSeqCst => "word.store(6, SeqCst);",
                Atomic::Fence => "fence(SeqCst);",
            }),
        }
    }

    fn bulk(&self, what: Bulk, to: &str, from: &str, ty: &str, length: &str) -> String {
        let (hash, sum) = (self.hash, self.sum);
        let slice = format!("slice::<{ty}>({to}, {length})");
        let added = |value: String| format!("let v = {value}; {sum} = {sum}.wrapping_add(v);");
        match what {
            Bulk::Copy => {
                format!("copy_nonoverlapping({from}.cast::<{ty}>(), {to}.cast::<{ty}>(), {length});")
            }
            Bulk::Move => format!("copy({from}.cast::<{ty}>(), {to}.cast::<{ty}>(), {length});"),
            Bulk::Set => format!("write_bytes({to}.cast::<{ty}>(), 0x5a, {length});"),
            Bulk::Fill => format!("{slice}.fill(make({hash}));"),
            Bulk::Reverse => format!("{{ let x = {slice}; x.reverse(); std::hint::black_box(x); }}"),
            Bulk::Within => {
                format!("{{ let x = {slice}; let l = x.len(); x.copy_within(..l / 2, l / 4); }}")
            }
            Bulk::Swap => {
                format!(
                    "{{ let x = ({to}.cast::<{ty}>(), {from}.cast::<{ty}>()); std::ptr::swap_nonoverlapping(x.0, x.1, {length}); std::hint::black_box(x); }}"
                )
            }
            Bulk::Equal => {
                format!(
                    "{{ let l = {length}; {hash} = mix({hash}, (slice::<{ty}>({to}, l) == slice::<{ty}>({from}, l)) as u64); }}"
                )
            }
            Bulk::Compare => {
                format!(
                    "{{ let l = {length}; {hash} = mix({hash}, (*slice::<{ty}>({to}, l)).cmp(slice::<{ty}>({from}, l)) as i8 as u64); }}"
                )
            }
            Bulk::SwapElements => {
                format!("{{ let x = {slice}; let l = x.len(); x.swap(0, l / 2); std::hint::black_box(x); }}")
            }
            Bulk::SumInlined => added(format!("sum_inlined::<{ty}>({to}, {length})")),
            Bulk::SumCalled => added(format!("sum_called::<{ty}>({to}, {length})")),
            Bulk::SumRecursive => added(format!("sum_recursive::<{ty}>({to}, {length})")),
            Bulk::FillCalled => format!("fill_called::<{ty}>({to}, {length});"),
            Bulk::SumFar => added(format!("sum_far::<{ty}>({to}, {length})")),
            Bulk::FillFar => format!("fill_far::<{ty}>({to}, {length});"),
            Bulk::EachFar => {
                format!(
                    "{{ let x = {to}.cast::<{ty}>(); each_far({length}, |i| unsafe {{ *x.add(i) = make(spread(i)) }}); }}"
                )
            }
        }
    }

    fn write_loop(&mut self, kind: &Loop, body: &[Stmt]) {
        match kind {
            Loop::For { var, from, to, step, reversed, inclusive } => {
                let dots = if *inclusive { "..=" } else { ".." };
                let mut range = format!("({}){dots}({})", self.expr(from), self.expr(to));
                if *reversed {
                    range = format!("({range}).rev()");
                }
                if *step > 1 {
                    range = format!("({range}).step_by({step})");
                }
                self.body(&format!("for v{var} in {range}"), &[], body, "");
            }
            Loop::While { var, from, to, step, bits, down, until_equal } => {
                let ty = if *bits == 64 { "usize".to_owned() } else { format!("u{bits}") };
                let (relation, change) = match (until_equal, down) {
                    (true, true) => ("!=", "sub"),
                    (true, false) => ("!=", "add"),
                    (false, true) => (">", "sub"),
                    (false, false) => ("<", "add"),
                };
                self.line(&format!("let mut v{var} = ({}) as {ty};", self.expr(from)));
                let head = format!("while v{var} {relation} ({}) as {ty}", self.expr(to));
                self.body(&head, &[], body, &format!("v{var} = v{var}.wrapping_{change}({step});"));
            }
            Loop::Walk { walker, base, ty, from, to, step, down } => {
                let (base, ty) = (self.base(base), ty.name());
                self.line(&format!("let p{walker} = {base}.cast::<{ty}>();"));
                let (from, to) = (self.expr(from), self.expr(to));
                self.line(&format!(
                    "let (low{walker}, high{walker}) = (p{walker}.add({from}), p{walker}.add({to}));"
                ));
                if *down {
                    self.line(&format!("let mut w{walker} = high{walker};"));
                    let first = format!("w{walker} = w{walker}.sub({step});");
                    self.body(&format!("while w{walker} > low{walker}"), &[first], body, "");
                } else {
                    self.line(&format!("let mut w{walker} = low{walker};"));
                    let update = format!("w{walker} = w{walker}.add({step});");
                    self.body(&format!("while w{walker} < high{walker}"), &[], body, &update);
                }
            }
            Loop::Iter { var, kind, base, ty, length } => {
                let ty = ty.name();
                let slice = format!("slice::<{ty}>({}, {})", self.base(base), self.expr(length));
                self.iterate(*var, kind, &slice, &ty, &self.expr(length), body);
            }
        }
    }

    fn iterate(&mut self, var: usize, kind: &Iter, slice: &str, ty: &str, length: &str, body: &[Stmt]) {
        let (hash, sum) = (self.hash, self.sum);
        let add = |value: &str| format!("{sum} = {sum}.wrapping_add(fold({value}));");
        let (over, first) = match kind {
            Iter::Plain => ("iter()".to_owned(), vec![add("*x")]),
            Iter::Reversed => ("iter().rev()".to_owned(), vec![add("*x")]),
            Iter::Step(step) => (format!("iter().step_by({step})"), vec![add("*x")]),
            Iter::Mut => ("iter_mut()".to_owned(), vec![format!("*x = make(spread(v{var}) ^ {hash});")]),
            Iter::Zip(other) => {
                let other = format!("slice::<{ty}>({}, {length})", self.base(other));
                let head =
                    format!("for (v{var}, (x, y)) in {slice}.iter_mut().zip({other}.iter()).enumerate()");
                let first = [
                    "let y = fold(*y);".to_owned(),
                    format!("{sum} = {sum}.wrapping_add(y);"),
                    "*x = make(y.wrapping_mul(3).wrapping_add(1));".to_owned(),
                ];
                return self.body(&head, &first, body, "");
            }
            Iter::Chunks(size) => {
                (format!("chunks({size})"), vec![format!("for y in x {{ {} }}", add("*y"))])
            }
            Iter::ChunksExact(size) => {
                (format!("chunks_exact({size})"), vec![format!("for y in x {{ {} }}", add("*y"))])
            }
            Iter::Windows(size) => {
                (format!("windows({size})"), vec![add("x[0]"), add(&format!("x[{}]", size - 1))])
            }
            Iter::Position => {
                let position = format!("{slice}.iter().position(|x| fold(*x) % 5 == 4)");
                return self.line(&format!("{hash} = mix({hash}, {position}.unwrap_or({length}) as u64);"));
            }
        };
        self.body(&format!("for (v{var}, x) in {slice}.{over}.enumerate()"), &first, body, "");
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Const(number) => format!("{number}usize"),
            Expr::Number(index) => NUMBERS[*index].to_owned(),
            Expr::Var(var) => format!("(v{var} as usize)"),
            Expr::Add(a, b) => format!("({} + {})", self.expr(a), self.expr(b)),
            Expr::Sub(a, b) => format!("({} - {})", self.expr(a), self.expr(b)),
            Expr::Mul(a, times) => format!("({} * {times})", self.expr(a)),
            Expr::Rem(a, by) => format!("({} % {by})", self.expr(a)),
            Expr::Load(place, by) => format!("(({} % {by}) as usize)", self.summed(&self.load(place))),
        }
    }

    /// A value that is also added up.
    fn summed(&self, load: &str) -> String {
        let sum = self.sum;
        format!("({{ let v = fold({load}); {sum} = {sum}.wrapping_add(v); v }})")
    }

    fn cond(&self, cond: &Cond) -> String {
        match cond {
            Cond::Less(a, b) => format!("({}) < ({})", self.expr(a), self.expr(b)),
            Cond::Equal(a, b) => format!("({}) == ({})", self.expr(a), self.expr(b)),
            Cond::Flag(bit) => format!("flags >> {bit} & 1 != 0"),
            Cond::Data(place, less) => format!("{} % 5 < {less}", self.summed(&self.load(place))),
        }
    }

    fn base(&self, base: &Base) -> String {
        match base {
            Base::Argument(index) => POINTER_NAMES[*index].to_owned(),
            Base::Walker(walker) => format!("w{walker}.cast::<u8>()"),
            Base::Local(local) => format!("l{local}.0.as_mut_ptr()"),
            Base::Select(bit, a, b) => {
                format!("(if flags >> {bit} & 1 != 0 {{ {} }} else {{ {} }})", self.base(a), self.base(b))
            }
            Base::Loaded(slot) => {
                let load =
                    format!("*((t + {POINTERS}) as *const u64).add(({}) % {POINTER_COUNT})", self.expr(slot));
                format!("({} as *mut u8)", self.summed(&load))
            }
        }
    }

    fn pointer(&self, place: &Place) -> String {
        let (base, index, ty) = (self.base(&place.base), self.expr(&place.index), place.ty.name());
        if place.in_bytes {
            format!("{base}.add({index}).cast::<{ty}>()")
        } else {
            format!("{base}.cast::<{ty}>().add({index})")
        }
    }

    /// What is accessed, if that is an expression for a place.
    fn place(&self, place: &Place) -> Option<String> {
        match &place.how {
            How::Deref => Some(format!("(*{})", self.pointer(place))),
            How::Field(field) => Some(format!("(*{}).{}", self.pointer(place), place.ty.fields()[*field].0)),
            How::Checked(length) => Some(format!(
                "slice::<{}>({}, {})[{}]",
                place.ty.name(),
                self.base(&place.base),
                self.expr(length),
                self.expr(&place.index)
            )),
            How::Unaligned | How::Volatile => None,
        }
    }

    fn load(&self, place: &Place) -> String {
        self.place(place).unwrap_or_else(|| {
            let how = if place.how == How::Volatile { "volatile" } else { "unaligned" };
            format!("{}.read_{how}()", self.pointer(place))
        })
    }

    fn store(&mut self, place: &Place, value: &str) {
        let line = match self.place(place) {
            Some(to) => format!("let v = make({value}); {to} = v;"),
            None => {
                let how = if place.how == How::Volatile { "volatile" } else { "unaligned" };
                format!("let v = make({value}); {}.write_{how}(v);", self.pointer(place))
            }
        };
        self.line(&line);
    }
}
