//! The reference on functions that can be judged by eye, and the generator's breadth.

use super::ast::{Base, Bulk, Expr, Fold, Function, How, Input, Loop, Masked, Place, Stmt, Ty, Value};
use super::{BASE, Expected, Processor, Refused, generate, interpret, smaller, write};

fn function(body: Vec<Stmt>) -> Function {
    let input = Input { seed: 1, pointers: [256, 512, 768], stored: [256; 8], numbers: [5, 0, 2], flags: 0 };
    Function { seed: 0, input, hash_outside: false, wide: false, locals: Vec::new(), body }
}

fn place(ty: Ty, index: Expr) -> Place {
    Place { base: Base::Argument(0), ty, index, in_bytes: false, how: How::Deref }
}

fn read(ty: Ty, index: Expr) -> Stmt {
    Stmt::Read { place: place(ty, index), fold: Fold::Chain, passed: false }
}

fn expected(body: Vec<Stmt>) -> Expected {
    interpret(&function(body), BASE).expect("it does nothing wrong")
}

/// The bytes behind the first pointer that are touched at the last time of showing: `r`, `w`, or `.`.
fn last(expected: &Expected) -> String {
    let shown = expected.shown.last().expect("the end is shown");
    // What is there if nothing has ended the strand.
    let touched = shown.expected(&super::Touched { seen: [0xff; 256], written: [0; 256] });
    let letter = |at| match touched.of(at) {
        (false, _) => '.',
        (true, false) => 'r',
        (true, true) => 'w',
    };
    (256..272).map(letter).collect()
}

#[test]
fn a_loop_with_steps_touches_what_it_says() {
    let kind = Loop::For {
        var: 0,
        from: Expr::Const(0),
        to: Expr::Number(0),
        step: 2,
        reversed: false,
        inclusive: false,
    };
    let all = expected(vec![Stmt::Loop { kind, body: vec![read(Ty::U16, Expr::Var(0))] }]);
    assert_eq!(last(&all), "rr..rr..rr......");
}

#[test]
fn after_an_event_the_set_begins_anew() {
    let write = Stmt::Write { place: place(Ty::Bytes(3), Expr::Const(1)), value: Value::Hash(7) };
    let before = vec![write.clone(), read(Ty::U8, Expr::Const(0))];
    assert_eq!(last(&expected(before.clone())), "r..www..........");
    let after = [before, vec![Stmt::Show, Stmt::Event, read(Ty::U8, Expr::Const(3))]].concat();
    let all = expected(after);
    assert_eq!((last(&all).as_str(), all.shown.len()), ("...r............", 2));
}

#[test]
fn what_is_not_defined_is_refused() {
    let refused = |stmt| interpret(&function(vec![stmt]), BASE).err();
    assert_eq!(refused(read(Ty::U64, Expr::Const(300))), Some(Refused::Outside));
    let below = Expr::Sub(Box::new(Expr::Number(1)), Box::new(Expr::Const(1)));
    assert_eq!(refused(read(Ty::U8, below)), Some(Refused::Overflow));
    let mut checked = place(Ty::U8, Expr::Const(5));
    checked.how = How::Checked(Box::new(Expr::Number(0)));
    let stmt = Stmt::Read { place: checked, fold: Fold::Chain, passed: false };
    assert_eq!(refused(stmt.clone()), Some(Refused::HashLost));
    let outside = Function { hash_outside: true, ..function(vec![stmt]) };
    assert!(interpret(&outside, BASE).is_ok_and(|all| all.panics));
}

/// The compiler may leave it out: found by seed 5002789, in which half of two elements is copied to the quarter.
#[test]
fn what_is_copied_to_where_it_is_is_refused() {
    let (to, from) = (Base::Argument(0), Base::Argument(0));
    let bulk = |what, length| {
        let length = Expr::Const(length);
        let stmt = Stmt::Bulk { what, to: to.clone(), from: from.clone(), ty: Ty::U32, length };
        interpret(&function(vec![stmt]), BASE).err()
    };
    assert_eq!(bulk(Bulk::Within, 2), Some(Refused::Overlap));
    assert_eq!(bulk(Bulk::Within, 4), None);
    assert_eq!(bulk(Bulk::Within, 1), None, "nothing is copied");
    assert_eq!(bulk(Bulk::Move, 1), Some(Refused::Overlap));
    assert_eq!(bulk(Bulk::SwapElements, 1), Some(Refused::Overlap));
    assert_eq!(bulk(Bulk::SwapElements, 2), None);
}

/// Behind a loop whose mask picks the first and the third element.
#[test]
fn what_a_mask_leaves_out_is_not_touched() {
    let (from, to) = (Expr::Const(0), Expr::Const(2));
    let kind = Loop::For { var: 0, from, to, step: 1, reversed: false, inclusive: false };
    let index = Expr::Mul(Box::new(Expr::Var(0)), 1);
    let masked =
        Stmt::Masked { what: Masked::Load, base: Base::Argument(0), index, mask: Expr::Const(0b101) };
    assert_eq!(last(&expected(vec![Stmt::Loop { kind, body: vec![masked] }])), "rrrrrrrrrrrrrrrr");
    let masked = Stmt::Masked {
        what: Masked::Store,
        base: Base::Argument(0),
        index: Expr::Const(0),
        mask: Expr::Const(0b101),
    };
    assert_eq!(last(&expected(vec![masked])), "wwww....wwww....");
}

/// The bytes between the fields of a structure are nobody's.
#[test]
fn padding_is_not_touched() {
    let field = |field| Stmt::Read {
        place: Place { how: How::Field(field), ..place(Ty::Padded, Expr::Const(0)) },
        fold: Fold::Chain,
        passed: false,
    };
    assert_eq!(last(&expected(vec![field(0), field(1), field(2)])), "r.......rrrrrrrr");
}

#[test]
fn functions_have_all_that_there_is_and_can_be_made_smaller() {
    let all: Vec<Function> =
        (0..1500).map(|seed| generate(seed, Processor { avx2: true, avx512: true })).collect();
    let text: String = all.iter().map(|function| write(function, "f")).collect();
    for part in [
        "read_volatile",
        "read_unaligned",
        "slice::<[u8; 3]>",
        "pass(",
        ".rev()).step_by(",
        "while v",
        "as u8",
        "while w",
        ".zip(",
        ".chunks_exact(",
        ".windows(",
        ".position(",
        "copy_within",
        ".reverse()",
        ".fill(",
        "swap_nonoverlapping",
        "cmp(",
        "masked_load",
        "scatter",
        "avx_store",
        "expand(",
        "compress(",
        "each_far(",
        "fill_far",
        "sum_far",
        "break",
        "continue",
        "return",
        "fail(",
        "fail_if(",
        "opaque_with(",
        "event(t)",
        "in_task(",
        "fetch_add",
        "fence(",
        "load(Acquire)",
        "store(5, Release)",
        "<Padded>",
        "V64",
        "(*l0.0",
        "sum_recursive",
        "as *mut u8",
        "target_feature",
        ").b",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let panics = all.iter().filter(|function| interpret(function, BASE).is_ok_and(|all| all.panics)).count();
    assert!(panics > 50, "{panics}");
    for function in &all[..100] {
        assert!(smaller(function).iter().all(|small| small.size() < function.size()));
    }
}
