//! Temporary.
use dagsan_fuzz::source::{generate, SourceClass};
use dagsan_lang::*;
use dagsan_core::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() > 2 {
        println!("{}", generate(args[2].parse().unwrap(), SourceClass::from_name(&args[1]).unwrap()));
        return;
    }
    let count: u64 = args[1].parse().unwrap();
    for class in SourceClass::ALL {
        let mut tally = std::collections::BTreeMap::<String, u32>::new();
        let mut lines = 0;
        let mut steps = 0; let mut max_steps = 0;
        let mut shown = 0;
        for seed in 0..count {
            let source = generate(seed, class);
            lines += source.lines().count();
            let what = match Program::compile(&source, &CompileOptions { eliminations: Eliminations::none(), checks: true, count: true }) {
                Err(d) => { if shown < 3 { shown += 1; println!("{class} {seed}: {} at {:?}: {}", d[0].message, d[0].span, &source[d[0].span.start as usize..d[0].span.end as usize]); } "compile".to_owned() }
                Ok(p) => {
                    let mut d = Detector::new(order::default_engine(), Default::default());
                    let r = p.run(&Limits { steps: 1_000_000, words: 1 << 20 }, &mut d);
                    steps += r.counts.operations; max_steps = max_steps.max(r.counts.operations);
                    match r.end {
                        End::Finished => if d.races().is_empty() { "free" } else { "racy" }.to_owned(),
                        End::Failed(f) => { format!("failed {}", f.message.split(' ').take(1).collect::<String>()) }
                        End::Deadlock(_) => { "deadlock".to_owned()}
                        End::Refused(e) => format!("refused {e}"), _ => "other".into(),
                    }
                }
            };
            *tally.entry(what).or_default() += 1;
        }
        println!("{class}: {tally:?} lines {} steps {} max {max_steps}", lines as u64 / count, steps / count);
    }
}
