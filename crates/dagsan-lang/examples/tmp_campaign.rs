//! Temporary.
use dagsan_fuzz::source::{generate, SourceClass};
#[path = "../tests/support/mod.rs"]
mod support;
use dagsan_lang::*;
use support::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (from, to): (u64, u64) = (args[1].parse().unwrap(), args[2].parse().unwrap());
    let engine = dagsan_core::order::default_engine();
    for class in SourceClass::ALL {
        let (mut found, mut first) = (0, Vec::new());
        for seed in from..to {
            let source = generate(seed, class);
            let Ok(plain) = check(&source, engine, Eliminations::none()) else { println!("COMPILE {class} {seed}"); continue };
            let all = check(&source, engine, Eliminations::all()).unwrap();
            let mut same = (&plain.end, &plain.output, &plain.cells) == (&all.end, &all.output, &all.cells);
            if args.len() > 3 { for e in Elimination::ALL {
                for set in [Eliminations::none().with(e), Eliminations::all().without(e)] {
                let one = check(&source, engine, set).unwrap();
                same &= (&plain.end, &plain.output, &plain.cells) == (&one.end, &one.output, &one.cells);
            } } }
            if !same { found += 1; if first.len() < 5 { first.push((source.lines().count(), seed)); } }
        }
        println!("{class}: {found} {first:?}");
    }
}
