//! The command line of `cargo dagsan`: `cargo dagsan [our options] run|test|… [cargo's arguments]`.
//!
//! cargo's arguments go to cargo as they are. A few of them matter here too: which profile, which directory, which
//! target. They are looked for only as far as cargo itself would read them.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{CommandFactory, Parser};

use crate::cli::ToldArguments;
use crate::exit;
use crate::native::session::Action;

/// The commands, and what they do.
const COMMANDS: [(&str, &str); 8] = [
    ("run", "Run a program, and say for every schedule of its input whether its tasks race"),
    ("test", "Run each test in a process of its own, and say the same of each"),
    ("bench", "Run the benchmarks, as one program each"),
    ("nextest", "As test, by cargo-nextest, if it is installed: cargo dagsan nextest run"),
    ("build", "Build only"),
    ("clean", "Remove what cargo dagsan has built and found"),
    ("setup", "Build the runtime only"),
    ("doctor", "Say how programs are compiled here, and show a race that is found"),
];

/// What `cargo dagsan --help` says besides.
const MORE: &str = "\
Examples:
  cargo dagsan run --release -- input.txt
  cargo dagsan test sort                               the tests whose names have `sort` in them
  cargo dagsan --report html=races.html test           and a page to look at
  cargo dagsan --baseline known.json test              66 for new races only
  cargo dagsan doctor                                  does it work here?

Text and short reports go to standard error, others to standard output; SARIF comes when all programs have ended.
Programs are built in the directory `dagsan` of the target directory. Variables: DAGSAN_OPTIONS for the runtime
inside the program (key=value:…; help=1 lists them; format=json is the same as --format json), DAGSAN_SOURCE for
a checkout of DagSan to build the runtime from, DAGSAN_CACHE for where the runtime is kept.";

/// The commands come first.
fn before_help() -> String {
    let lines: String = COMMANDS.iter().map(|(name, what)| format!("  {name:<8}{what}\n")).collect();
    format!("Commands, with the arguments that cargo takes:\n{lines}\n{MORE}")
}

/// The command line with its commands, as completions and manual pages have it. What follows a command is cargo's to read.
pub fn command_line() -> clap::Command {
    let commands = COMMANDS.map(|(name, what)| clap::Command::new(name).about(what));
    Own::command().subcommands(commands).after_help(format!("{MORE}\n\n{}", exit::NATIVE_HELP))
}

/// The options that are ours.
#[derive(Debug, Parser)]
#[command(
    name = "cargo-dagsan",
    bin_name = "cargo dagsan",
    version,
    about = "Build and run Rust programs under DagSan, a determinacy sanitizer for task-parallel programs",
    override_usage = "cargo dagsan [OPTIONS] <COMMAND> [CARGO'S ARGUMENTS]",
    before_help = before_help(),
    help_template = "{about}\n\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}\n",
    after_help = exit::NATIVE_HELP,
    allow_external_subcommands = true,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Own {
    #[command(flatten)]
    pub told: ToldArguments,

    #[command(subcommand)]
    pub command: Command,
}

/// The command, and what follows it.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    #[command(external_subcommand)]
    Any(Vec<OsString>),
}

/// What cargo's arguments say that matters to us.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// All of them, but for `--target-dir` and `--target`.
    pub arguments: Vec<OsString>,
    pub profile: Option<String>,
    pub target: Option<String>,
    pub target_dir: Option<PathBuf>,
    pub manifest_path: Option<PathBuf>,
    pub color: Option<String>,
    pub quiet: bool,
    /// How many jobs at a time.
    pub jobs: Option<usize>,
    /// Are targets named (`--lib`, `--test NAME`, …)?
    pub selects: bool,
    /// Are doctests asked for?
    pub doc: bool,
    pub help: bool,
    /// The first of those that mean nothing to us.
    pub other: Option<String>,
}

/// Options of cargo whose value may be the next argument.
const VALUED: [&str; 22] = [
    "--artifact-dir",
    "--bench",
    "--bin",
    "--cargo-profile",
    "--color",
    "--config",
    "--example",
    "--exclude",
    "--features",
    "--jobs",
    "--lockfile-path",
    "--manifest-path",
    "--message-format",
    "--package",
    "--profile",
    "--target",
    "--target-dir",
    "--test",
    "-F",
    "-Z",
    "-j",
    "-p",
];

/// Options that name targets.
const SELECTING: [&str; 9] =
    ["--lib", "--bin", "--bins", "--example", "--examples", "--test", "--tests", "--bench", "--benches"];

impl Passed {
    /// Reads the arguments of `cargo ACTION`.
    pub fn read(action: Action, arguments: &[OsString]) -> Passed {
        let mut passed = Passed::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let text = argument.to_string_lossy();
            let program = action == Action::Run && !text.starts_with('-');
            if text == "--" || program {
                passed.arguments.push(argument.clone());
                break;
            }
            let (name, joined) = match text.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(OsString::from(value))),
                _ => (&*text, None),
            };
            // `--bin` and its kin may stand alone, to ask which there are.
            let separate = joined.is_none() && VALUED.contains(&name);
            let next = || rest.as_slice().first().filter(|next| !next.to_string_lossy().starts_with('-'));
            let taken = if separate { next().cloned() } else { None };
            if taken.is_some() {
                rest.next();
            }
            let value = joined.or_else(|| taken.clone());
            // cargo-nextest has profiles of its own; that of cargo is `--cargo-profile`.
            let own = action == Action::Nextest && name == "--profile";
            let keep = own || passed.note(name, value.as_deref());
            if keep {
                passed.arguments.push(argument.clone());
                passed.arguments.extend(taken);
            }
        }
        passed.arguments.extend(rest.cloned());
        passed
    }

    /// Remembers what matters of an option. Should cargo see it too?
    fn note(&mut self, name: &str, value: Option<&OsStr>) -> bool {
        let text = || value.map(|value| value.to_string_lossy().into_owned());
        match name {
            "--release" | "-r" => self.profile = Some("release".to_owned()),
            "--profile" | "--cargo-profile" => self.profile = text(),
            "--manifest-path" => self.manifest_path = value.map(PathBuf::from),
            "--color" => self.color = text(),
            "--quiet" | "-q" => self.quiet = true,
            // cargo takes negative numbers too, and knows what they mean.
            "--jobs" | "-j" => self.jobs = text().and_then(|jobs| jobs.parse().ok()).filter(|&jobs| jobs > 0),
            "--doc" => self.doc = true,
            "--help" | "-h" => self.help = true,
            "--all-targets" => self.selects = true,
            "--target" => {
                self.target = text();
                return false;
            }
            "--target-dir" => {
                self.target_dir = value.map(PathBuf::from);
                return false;
            }
            _ => {
                self.selects |= SELECTING.contains(&name);
                self.other.get_or_insert_with(|| name.to_owned());
            }
        }
        true
    }

    /// The profile to be optimised for checking: any but cargo's two for development, which stay fast to build.
    pub fn optimised_profile(&self, action: Action) -> Option<&str> {
        let default = if action == Action::Bench { Some("bench") } else { None };
        self.profile.as_deref().or(default).filter(|profile| !matches!(*profile, "dev" | "test"))
    }
}

#[cfg(test)]
mod tests {
    use dagsan_report::Format;

    use super::*;

    fn read(action: Action, line: &str) -> Passed {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Passed::read(action, &arguments)
    }

    fn kept(passed: &Passed) -> String {
        passed.arguments.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Own::command().debug_assert();
        command_line().debug_assert();
        let own = Own::try_parse_from("x --format json run -q -- --help".split(' ')).unwrap();
        let Command::Any(rest) = own.command;
        assert_eq!(
            (own.told.reports.format, rest.join(OsStr::new(" "))),
            (Some(Format::Json), "run -q -- --help".into())
        );
    }

    #[test]
    fn what_matters_is_found_in_all_spellings() {
        let passed =
            read(Action::Run, "-q --profile=fast --target-dir d --color always --manifest-path m/Cargo.toml");
        assert!(passed.quiet && !passed.selects);
        assert_eq!(
            ["-j 3", "--jobs=2", "--jobs -1"].map(|line| read(Action::Test, line).jobs),
            [Some(3), Some(2), None]
        );
        assert_eq!(passed.profile.as_deref(), Some("fast"));
        assert_eq!(passed.color.as_deref(), Some("always"));
        assert_eq!(passed.target_dir, Some(PathBuf::from("d")));
        assert_eq!(passed.manifest_path, Some(PathBuf::from("m/Cargo.toml")));
        assert_eq!(kept(&passed), "-q --profile=fast --color always --manifest-path m/Cargo.toml");
        assert_eq!(passed.other, None);
        assert_eq!(read(Action::Build, "-q -p x").other.as_deref(), Some("-p"));
        assert_eq!(read(Action::Build, "-r --target=x").target.as_deref(), Some("x"));
    }

    #[test]
    fn arguments_of_the_program_are_its_own() {
        let passed = read(Action::Run, "--bin release input.txt --release --target x");
        assert_eq!((&passed.profile, &passed.target, passed.selects), (&None, &None, true));
        assert_eq!(kept(&passed), "--bin release input.txt --release --target x");
        let passed = read(Action::Run, "-- --release");
        assert_eq!((&passed.profile, kept(&passed)), (&None, "-- --release".to_owned()));
        // The name of a test is followed by more options of cargo.
        assert_eq!(read(Action::Test, "sort --release").profile.as_deref(), Some("release"));
    }

    #[test]
    fn an_option_does_not_take_another_as_its_value() {
        let passed = read(Action::Run, "--bin --release");
        assert_eq!(passed.profile.as_deref(), Some("release"));
    }

    #[test]
    fn profiles_for_development_are_left_alone() {
        let profile = |action, line| read(action, line).optimised_profile(action).map(str::to_owned);
        assert_eq!(profile(Action::Run, ""), None);
        assert_eq!(profile(Action::Run, "--profile dev"), None);
        assert_eq!(profile(Action::Test, "--release").as_deref(), Some("release"));
        assert_eq!(profile(Action::Run, "--profile fast").as_deref(), Some("fast"));
        assert_eq!(profile(Action::Bench, "").as_deref(), Some("bench"));
        assert_eq!(profile(Action::Bench, "--profile dev"), None);
    }
}
