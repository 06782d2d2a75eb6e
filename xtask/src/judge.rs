//! `cargo xtask judge FILE`: one program, every engine, and the oracle.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use dagsan_core::Access;
use dagsan_core::order::{self, Engine};
use dagsan_fuzz::{Class, Program, judge};

/// Options of `judge`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The program, in the text form of `dagsan-fuzz`
    file: PathBuf,
    /// Judge only this engine
    #[arg(long)]
    engine: Option<String>,
}

/// Reads, runs and judges the program.
pub fn run(args: &Args) -> Result<()> {
    let name = args.file.display();
    let text = std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {name}"))?;
    let mut program = Program::parse(&text).with_context(|| format!("{name} is not a program"))?;
    program.number_sites();
    let engines: Vec<&'static Engine> = match &args.engine {
        Some(name) => vec![order::find(name)?],
        None => order::ENGINES.iter().collect(),
    };
    print!("{program}");
    print(&program, &engines, None)
}

/// Judges and prints what everybody says.
pub fn print(program: &Program, engines: &[&'static Engine], class: Option<Class>) -> Result<()> {
    let judgement = match judge(program, engines, class) {
        Ok(judgement) => judgement,
        Err(disagreement) => bail!("{disagreement}"),
    };
    println!();
    if judgement.outcome.deadlock {
        println!("the program deadlocks; what ran before that is judged");
    }
    for verdict in &judgement.verdicts {
        let name = verdict.engine.name;
        match &verdict.races {
            Err(error) => println!("{name:<13} {error}"),
            Ok(races) if races.is_empty() => println!("{name:<13} race-free"),
            Ok(races) => {
                println!("{name:<13} {} race(s)", races.len());
                for race in races {
                    let bytes: Vec<String> =
                        race.location.ranges().map(|range| format!("{range:?}")).collect();
                    println!(
                        "{:13}   {} and {} on {}",
                        "",
                        side(&race.first, program),
                        side(&race.second, program),
                        bytes.join(", ")
                    );
                }
            }
        }
    }
    println!("{:<13} {} racy byte(s): all of the above agree with it", "oracle", judgement.racy_bytes.len());
    Ok(())
}

/// One side of a race: the statement, and who ran it.
fn side(access: &Access, program: &Program) -> String {
    let statement = program.walk().find(|stmt| stmt.site() == Some(access.site));
    let text = statement.map(|stmt| Program { body: vec![stmt.clone()] }.to_string()).unwrap_or_default();
    format!("`{}` ({})", text.trim(), access.task)
}
