//! What can be asked of the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, Parser, Subcommand};
use dagsan_core::order::{self, ENGINES, Engine};
use dagsan_explore::Schedule;
use dagsan_findings::output;
use dagsan_lang::{Elimination, Eliminations, Limits};
use dagsan_report::graph::{self, Picture};
use dagsan_report::{Format, Report};
use serde::{Deserialize, Serialize};

use crate::accept::AcceptArguments;
use crate::check::Schedules;
use crate::exit;
use crate::files;
use crate::manual::{CompletionsArguments, ManArguments};
use crate::native::shown;
use crate::reports::ReportFile;

/// What `dagsan --help` says at its end.
const EXAMPLES: &str = "\
Examples:
  dagsan check program.task                     a program of the task language
  dagsan check programs --format short          all below a directory, a line per race
  dagsan check program.task --report html=a.html
  dagsan cc -fopenmp program.c -o program       C, with OpenMP or threads
  dagsan run ./program                          what `dagsan cc` has linked
  dagsan report target/dagsan/findings/x.json   what a native program left, again
Rust programs are run by `cargo dagsan run` and `cargo dagsan test`.";

/// What `dagsan check --help` says besides its options.
fn check_help() -> String {
    format!(
        "Examples:\n  dagsan check program.task --witness\n  dagsan check program.task --graph graph.svg\n  \
         dagsan check programs --report sarif=a.sarif --report html=a.html\n  \
         dagsan check programs --baseline known.json --update-baseline\n\n{}",
        exit::HELP
    )
}

/// What `dagsan run --help` says besides its options.
fn run_help() -> String {
    format!(
        "Examples:\n  dagsan run ./program input.txt\n  dagsan run --format short ./program\n  \
         dagsan run --report sarif=a.sarif --graph graph.svg ./program\n\n{}",
        exit::NATIVE_HELP
    )
}

/// What `dagsan report --help` and `dagsan explain --help` say besides their options.
fn findings_help() -> String {
    format!(
        "Examples:\n  dagsan report target/dagsan/findings/x.json --report html=a.html\n  \
         dagsan report target/dagsan/findings/x.json --graph graph.svg\n  \
         dagsan explain target/dagsan/findings/x.json\n\n{}",
        exit::NATIVE_HELP
    )
}

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "dagsan", version, about = "A determinacy sanitizer for task-parallel programs", after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    Check(CheckArguments),
    Cc(CompilerArguments),
    #[command(name = "c++")]
    Cxx(CompilerArguments),
    Run(RunArguments),
    Report(FindingsArguments),
    Explain(ExplainArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Compile or link C (c++: C++), with OpenMP or threads, so that it is checked when it runs
///
/// A drop-in for a C compiler: make CC="dagsan cc". It runs clang-19, or the clang that DAGSAN_CC (DAGSAN_CXX) names.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct CompilerArguments {
    /// The arguments of clang
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Run a program that `dagsan cc` has linked, and say for every schedule of this run whether it races
#[derive(Debug, Args)]
#[command(after_help = run_help())]
pub struct RunArguments {
    #[command(flatten)]
    pub told: ToldArguments,

    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,

    /// The program, and its arguments
    #[arg(required = true, value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// Show again what a program under `cargo dagsan` was found to do
#[derive(Debug, Args)]
#[command(after_help = findings_help())]
pub struct FindingsArguments {
    /// A file of findings; `cargo dagsan` names it when there are races
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    #[command(flatten)]
    pub reports: ReportArguments,

    #[command(flatten)]
    pub accept: AcceptArguments,

    #[command(flatten)]
    pub graph: AroundArguments,

    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

/// What is told of native programs that run, and where
#[derive(Debug, Clone, Default, Args)]
pub struct ToldArguments {
    #[command(flatten)]
    pub reports: ReportArguments,

    #[command(flatten)]
    pub accept: AcceptArguments,

    #[command(flatten)]
    pub graph: AroundArguments,

    /// Write what --format shows to FILE instead
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl ToldArguments {
    /// Can all files be written, and does each have one report only?
    pub fn check_files<'a>(
        &'a self,
        accept: &'a AcceptArguments,
        read: impl IntoIterator<Item = &'a Path>,
    ) -> Result<()> {
        let others = [self.graph.path(), self.output.as_deref()];
        self.reports.check_files(accept, others.into_iter().flatten(), read)
    }

    /// The file of `--output`, by a name that means the same in every directory.
    pub fn absolute_output(&self) -> Result<Option<PathBuf>> {
        let absolute = self.output.as_ref().map(std::path::absolute).transpose();
        absolute.context("cannot tell the current directory")
    }
}

/// A picture of what is around the races of a native program
#[derive(Debug, Clone, Default, Args)]
pub struct AroundArguments {
    /// Write what is around the races in the computation graph to FILE.dot, FILE.json or FILE.svg: what comes before both accesses, the ways to
    /// each of them, and what comes after both; for one program only
    #[arg(id = "graph", long, value_name = "FILE", value_parser = GraphFile::parse)]
    pub file: Option<GraphFile>,
}

impl AroundArguments {
    /// The file, if there is to be one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }
}

/// How reports are shown, and where they are written
#[derive(Debug, Clone, Default, Args)]
pub struct ReportArguments {
    /// How to show what was found; text, if this is left out
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub format: Option<Format>,

    /// Write a report to FILE besides; may be repeated: --report sarif=a.sarif --report json=a.json
    #[arg(long = "report", value_name = "FORMAT=FILE", value_parser = ReportFile::parse)]
    pub files: Vec<ReportFile>,
}

impl ReportArguments {
    /// Can the files be written that these name, and `others`, and does none of them take the place of another, or of what is read?
    pub fn check_files<'a>(
        &'a self,
        accept: &'a AcceptArguments,
        others: impl IntoIterator<Item = &'a Path>,
        read: impl IntoIterator<Item = &'a Path>,
    ) -> Result<()> {
        let reports = self.files.iter().map(|file| file.path.as_path());
        files::check(reports.chain(others).chain(accept.written()), read.into_iter().chain(accept.read()))
    }

    /// Is a report of this format wanted?
    pub fn has(&self, format: Format) -> bool {
        self.format == Some(format) || self.files.iter().any(|file| file.format == format)
    }
}

/// Run the program again that has left FILE, and show its races with complete call stacks
#[derive(Debug, Args)]
pub struct ExplainArguments {
    #[command(flatten)]
    pub findings: FindingsArguments,
}

/// Run task programs, and say for every schedule of their input whether they race
///
/// Can two parallel tasks touch the same memory, one of them writing? One run decides, unless the program has
/// isolated sections or ewait: then every schedule that makes a difference is run.
#[derive(Debug, Args)]
#[command(after_help = check_help())]
pub struct CheckArguments {
    /// Programs of the task language, or directories of them (*.task, and those below)
    #[arg(required = true, value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,

    /// The algorithm that says which strand precedes which
    #[arg(long, value_name = "NAME", default_value = order::default_engine().name, value_parser = engines())]
    pub engine: &'static Engine,

    #[command(flatten)]
    pub reports: ReportArguments,

    #[command(flatten)]
    pub accept: AcceptArguments,

    /// Also say what the check took: accesses, eliminated checks, queries, memory, time
    #[arg(long)]
    pub stats: bool,

    /// Write the computation graph to FILE.dot, FILE.json or FILE.svg; turns the eliminations off, so that
    /// every access is in it; for one input only
    #[arg(long, value_name = "FILE", value_parser = GraphFile::parse, conflicts_with = "expect")]
    pub graph: Option<GraphFile>,

    /// For each race, run its two accesses in both orders and show what differs
    #[arg(long)]
    pub witness: bool,

    /// Do without a static elimination of checks; may be repeated, and may be a list: a,b
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = eliminations())]
    pub no_elim: Vec<String>,

    /// Which schedules to run, if the program has isolated sections or ewait: all that make a difference, the
    /// serial one only, or at most so many
    #[arg(long, value_name = "all|one|N", default_value = "all", value_parser = parse_schedules)]
    pub schedules: Schedules,

    /// Run the schedule that a report names
    #[arg(long, value_name = "SCHEDULE", conflicts_with = "schedules")]
    pub replay: Option<Schedule>,

    /// Stop exploring schedules after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub max_time: u64,

    /// Stop exploring after so many schedules
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_schedules: u64,

    /// Stop a program after so many operations
    #[arg(long, value_name = "N", default_value_t = Limits::default().steps)]
    pub max_steps: u64,

    /// Compare each verdict with the first line of the file: `// expect: race x, a[3]`, `race-free`,
    /// `deadlock` or `error TEXT`; a file exceptions.txt beside it may say otherwise for some engines
    #[arg(long)]
    pub expect: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

/// A file for a computation graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphFile {
    pub path: PathBuf,
    pub kind: GraphKind,
}

/// How to write a computation graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GraphKind {
    Dot,
    Json,
    Svg,
}

impl GraphFile {
    fn parse(path: &str) -> Result<GraphFile> {
        let kind = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
            Some("dot") => GraphKind::Dot,
            Some("json") => GraphKind::Json,
            Some("svg") => GraphKind::Svg,
            _ => bail!("the name must end in .dot, .json or .svg, which says how to write the graph"),
        };
        Ok(GraphFile { path: path.into(), kind })
    }

    /// With a name that means the same in every directory.
    pub fn absolute(&self) -> Result<GraphFile> {
        let path = std::path::absolute(&self.path).context("cannot tell the current directory")?;
        Ok(GraphFile { path, kind: self.kind })
    }

    /// Writes the picture.
    pub fn write(&self, picture: &Picture) -> Result<()> {
        let text = match self.kind {
            GraphKind::Dot => graph::dot(picture),
            GraphKind::Json => graph::json(picture)?,
            GraphKind::Svg => graph::svg(picture)?,
        };
        output::write(&self.path, text.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Writes what is around the races of a native program, and says so in its report, or why there is nothing to write.
    pub fn write_around(&self, report: &mut Report) -> Result<()> {
        let note = match Picture::around(report) {
            Some(picture) => {
                self.write(&picture)?;
                format!("what is around the races in the computation graph is in {}", shown(&self.path))
            }
            None if report.races.is_empty() => "there is no race, and so no graph of what is around one".to_owned(),
            None => "the graph was not kept: a run with exact places keeps it (DAGSAN_OPTIONS=sites=exact), unless too many strands are parallel \
                     (graph=N allows more)"
                .to_owned(),
        };
        report.notes.push(note);
        Ok(())
    }
}

fn parse_schedules(text: &str) -> Result<Schedules> {
    match text {
        "all" => Ok(Schedules::All(u64::MAX)),
        "one" => Ok(Schedules::One),
        number => match number.parse() {
            Ok(number) if number > 0 => Ok(Schedules::All(number)),
            _ => bail!("expected all, one or a number of schedules"),
        },
    }
}

impl CheckArguments {
    /// The schedules to run.
    pub fn schedules(&self) -> Schedules {
        match (&self.replay, &self.schedules) {
            (Some(schedule), _) => Schedules::Replay(schedule.clone()),
            (None, Schedules::All(most)) => Schedules::All((*most).min(self.max_schedules)),
            (None, other) => other.clone(),
        }
    }

    /// The static eliminations of checks that are left.
    pub fn eliminations(&self) -> Eliminations {
        if self.graph.is_some() || self.no_elim.iter().any(|name| name == ALL) {
            return Eliminations::none();
        }
        let dropped = self.no_elim.iter().filter_map(|name| Elimination::from_name(name));
        dropped.fold(Eliminations::all(), Eliminations::without)
    }
}

/// The formats, by name.
pub fn formats() -> impl TypedValueParser<Value = Format> {
    let values = Format::ALL.iter().map(|format| PossibleValue::new(format.name()).help(format.summary()));
    PossibleValuesParser::new(values).try_map(|name| format_named(&name).context("no format"))
}

/// The format of this name.
pub fn format_named(name: &str) -> Option<Format> {
    Format::ALL.into_iter().find(|format| format.name() == name)
}

fn engines() -> impl TypedValueParser<Value = &'static Engine> {
    let values = ENGINES.iter().map(|engine| PossibleValue::new(engine.name).help(engine.summary));
    PossibleValuesParser::new(values).try_map(|name| order::find(&name))
}

/// Stands for all eliminations.
const ALL: &str = "all";

fn eliminations() -> PossibleValuesParser {
    let names = Elimination::ALL.map(Elimination::name);
    PossibleValuesParser::new(names.into_iter().chain([ALL]).map(PossibleValue::new))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn arguments(line: &str) -> CheckArguments {
        match Cli::try_parse_from(line.split(' ')).unwrap().action {
            Action::Check(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_report_without_a_directory_is_refused_before_the_run() {
        let told = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().action {
            Action::Run(arguments) => {
                let checked = arguments.told.check_files(&arguments.told.accept, []);
                checked.map_err(|error| error.to_string())
            }
            other => panic!("{other:?}"),
        };
        let baseline = "--baseline /no/such/x --update-baseline";
        for option in ["--report sarif=/no/such/x", "--graph /no/such/x.svg", "--output /no/such/x", baseline]
        {
            let why = told(&format!("dagsan run {option} ./program")).unwrap_err();
            assert!(
                why.starts_with("cannot write /no/such/x")
                    && why.ends_with(": there is no directory /no/such"),
                "{why}"
            );
        }
        assert_eq!(told("dagsan run --report json=x --output /dev/null ./program"), Ok(()));
    }

    #[test]
    fn eliminations_are_dropped_by_name() {
        let all = arguments("dagsan check x").eliminations();
        assert!(Elimination::ALL.iter().all(|&name| all.contains(name)));
        let some = arguments("dagsan check x --no-elim affine,local --no-elim read-only").eliminations();
        use Elimination::{Affine, Local, ReadOnly};
        assert_eq!(some, all.without(Affine).without(Local).without(ReadOnly));
        assert_eq!(arguments("dagsan check x --no-elim all").eliminations(), Eliminations::none());
        assert_eq!(arguments("dagsan check x --graph g.svg").eliminations(), Eliminations::none());
    }
}
