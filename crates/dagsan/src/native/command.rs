//! `cargo dagsan run|test|bench|build|clean|setup|doctor`: prepares, and lets cargo do the work.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{CommandFactory, Parser};
use dagsan_report::Project;

use crate::accept::{AcceptArguments, Accepting};
use crate::cli::GraphFile;
use crate::exit::Code;
use crate::native::arguments::{Command, Own, Passed};
use crate::native::config::{Config, Metadata, TARGET, cargo, check_host};
use crate::native::outcome::program_code;
use crate::native::pass::{self, Pass};
use crate::native::rayon;
use crate::native::runtime::{self, Hooks};
use crate::native::session::{Action, Runtime, Session, VARIABLE};
use crate::native::told::{self, Told};
use crate::native::{RUNNER, collected, doctor, findings, interrupt, sources, status, wrapper};
use crate::reports;

/// The directory in the target directory.
const DIRECTORY: &str = "dagsan";

/// Does what was asked, and says how to end.
pub fn run(arguments: &[OsString]) -> Result<u8> {
    let own = Own::parse_from(
        [OsStr::new("cargo dagsan")].into_iter().chain(arguments.iter().map(OsString::as_os_str)),
    );
    let Command::Any(command) = &own.command;
    let (name, rest) = command
        .split_first()
        .context("say what to do: run, test, bench, nextest, build, clean, setup or doctor")?;
    let action = match &*name.to_string_lossy() {
        "run" | "r" => Some(Action::Run),
        "test" | "t" => Some(Action::Test),
        "bench" => Some(Action::Bench),
        "nextest" => Some(Action::Nextest),
        "build" | "b" => Some(Action::Build),
        "clean" | "setup" | "doctor" => None,
        other => {
            bail!(
                "there is no `cargo dagsan {other}`: use run, test, bench, nextest, build, clean, setup or doctor"
            )
        }
    };
    let passed = Passed::read(action.unwrap_or(Action::Build), rest);
    if passed.help {
        print!("{}", Own::command().render_help());
        return Ok(Code::Clean.number());
    }
    match action {
        Some(action) => {
            let directory = directory(&passed)?;
            Build::new(own, passed, directory)?.run(action)
        }
        None if name == "clean" => clean(&passed),
        None => {
            let is_doctor = name == "doctor";
            let directory = directory_anywhere(&passed)?;
            let build = Build::new(own, passed, directory)?;
            let (_, pass) = build.runtime(Action::Build)?;
            match is_doctor {
                true => doctor::run(&pass, &build.directory, &build.color),
                false => Ok(Code::Clean.number()),
            }
        }
    }
}

fn clean(passed: &Passed) -> Result<u8> {
    if let Some(other) = &passed.other {
        bail!("cargo dagsan clean removes all that cargo dagsan has built: leave out {other}");
    }
    let directory = directory_anywhere(passed)?;
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", directory.display()));
        }
        _ => {}
    }
    sources::clean()?;
    Ok(Code::Clean.number())
}

/// Where everything of ours is.
fn directory(passed: &Passed) -> Result<PathBuf> {
    let target = match &passed.target_dir {
        Some(directory) => std::path::absolute(directory).context("cannot tell the current directory")?,
        None => Metadata::read(passed.manifest_path.as_deref())?.target_directory,
    };
    Ok(target.join(DIRECTORY))
}

/// The same for what needs no package: without one it is in the cache, unless cargo's variable names a directory.
fn directory_anywhere(passed: &Passed) -> Result<PathBuf> {
    let is_named = passed.target_dir.is_some() || passed.manifest_path.is_some();
    let has_package = |directory: &Path| directory.join("Cargo.toml").is_file();
    if is_named || current()?.ancestors().any(has_package) {
        return directory(passed);
    }
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => PathBuf::from(directory),
        None => sources::cache()?.join(sources::ELSEWHERE),
    };
    Ok(std::path::absolute(target).context("cannot tell the current directory")?.join(DIRECTORY))
}

/// One call of cargo, to be made.
struct Build {
    own: Own,
    passed: Passed,
    config: Config,
    directory: PathBuf,
    color: String,
    llvm: u32,
}

impl Build {
    fn new(own: Own, passed: Passed, directory: PathBuf) -> Result<Build> {
        let llvm = check_host(passed.target.as_deref())?;
        let config = Config::read();
        config.check_linker()?;
        let color = passed.color.clone().or_else(|| env::var("CARGO_TERM_COLOR").ok());
        let color = color.unwrap_or_else(|| "auto".to_owned());
        Ok(Build { own, passed, config, directory, color, llvm })
    }

    fn runtime(&self, action: Action) -> Result<(Runtime, Pass)> {
        let hooks = match self.passed.optimised_profile(action) {
            Some(_) => Hooks::Inlined,
            None => Hooks::Called,
        };
        runtime::build(&self.directory.join("runtime"), hooks, &self.color, self.passed.quiet)
    }

    fn run(&self, action: Action) -> Result<u8> {
        ensure!(!self.passed.doc, "doctests cannot be checked: leave out --doc, and put the code in a test");
        ensure!(
            self.own.told.graph.file.is_none() || action == Action::Run,
            "--graph draws one program: use it with `run`, or with `dagsan report`, for the findings of a test"
        );
        // It takes options of cargo's behind its own command only.
        let (own, arguments) = match (action, self.passed.arguments.split_first()) {
            (Action::Nextest, Some((run, rest))) if run == "run" || run == "r" => (Some(run), rest),
            (Action::Nextest, _) => {
                bail!("say `cargo dagsan nextest run`: other commands of cargo-nextest run no tests")
            }
            _ => (None, &self.passed.arguments[..]),
        };
        // What is wrong with it is said before anything is built.
        let accept = self.accept_arguments()?;
        self.own.told.check_files(&accept, [])?;
        let accepting = Accepting::load(&accept, Project::around(&current()?))?;
        let session = self.session(action, accept)?;
        forget_other_flags(&self.directory, &session.runtime)?;
        findings::prepare(&session)?;
        let mut command = cargo();
        if let Some(own) = own {
            command.arg(action.name()).arg(own);
        }
        for setting in self.settings(action, session.runtime.pass.is_some())? {
            command.arg("--config").arg(setting);
        }
        if own.is_none() {
            command.arg(action.name());
        }
        command.args(["--target", TARGET, "--target-dir"]).arg(&self.directory);
        if action == Action::Test && !self.passed.selects {
            command.arg("--tests");
            if !self.passed.quiet {
                status::note(&self.color, "doctests are not checked");
            }
        }
        command.args(arguments);
        let executable = env::current_exe().context("cannot tell where cargo-dagsan is")?;
        command.env("RUSTC_WRAPPER", executable).env(VARIABLE, session.to_variable()?);
        interrupt::listen()?;
        let status = command.status().context("cannot start cargo")?;
        told::settle(&session);
        let told = told::all(&session)?;
        let files = collected::files(&self.own.told.reports)?;
        let mut done = vec![collected::write(&session, &files, &told)];
        if action != Action::Build {
            done.push(collected::accept(&accepting, &told, &self.color));
        }
        reports::all(done.into_iter().filter_map(Result::err).collect())?;
        // After a failed test cargo ends with a code of its own.
        let raced = told.contains(&Told::Code(Code::Race.number()));
        Ok(match raced {
            true => Code::Race.number(),
            // cargo is ended by the signal, perhaps before we have noted it.
            false if interrupt::pressed() || status.signal() == Some(libc::SIGINT) => interrupt::CODE,
            false => program_code(status),
        })
    }

    /// Which races do not count, from the directory of the package.
    fn accept_arguments(&self) -> Result<AcceptArguments> {
        let manifest = self.passed.manifest_path.as_deref().and_then(Path::parent);
        let start = match manifest {
            Some(directory) => current()?.join(directory),
            None => current()?,
        };
        let packages = Metadata::read(self.passed.manifest_path.as_deref())?.packages();
        self.own.told.accept.absolute(&start, &packages)
    }

    /// Settings of cargo that are ours. With our pass, hooks are in line however the program is linked.
    fn settings(&self, action: Action, with_pass: bool) -> Result<Vec<String>> {
        let executable = env::current_exe().context("cannot tell where cargo-dagsan is")?;
        let executable =
            executable.to_str().context("cargo-dagsan is in a directory whose name is not UTF-8")?;
        // A string in JSON is one in TOML too.
        let runner = serde_json::to_string(&[executable, RUNNER])?;
        let mut settings = vec![format!("target.{TARGET}.runner={runner}")];
        if let Some(profile) = self.passed.optimised_profile(action).filter(|_| !with_pass) {
            let profile = serde_json::to_string(profile)?;
            // The hooks are inlined then.
            settings.push(format!("profile.{profile}.lto='fat'"));
            settings.push(format!("profile.{profile}.codegen-units=1"));
            settings.push(format!("profile.{profile}.incremental=false"));
        }
        Ok(settings)
    }

    fn session(&self, action: Action, accept: AcceptArguments) -> Result<Session> {
        let (runtime, pass) = self.runtime(action)?;
        if let Pass::ThreadSanitizers(why) = &pass {
            let seen = "accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen";
            status::warning(&self.color, &format!("dagsan's own pass is not used, and {seen}: {why}"));
        }
        let runner = self.config.runner();
        for name in self.config.conditional_runners() {
            if runner.is_empty() {
                status::warning(
                    &self.color,
                    &format!(
                        "the runner of target.'{name}' is not used: name it under target.{TARGET} to have it used"
                    ),
                );
            }
        }
        let options = findings::Options::from_environment();
        let findings = self.directory.join("findings");
        let told = findings.join(format!("told.{}", std::process::id()));
        let (format, collected) = collected::formats(&self.own.told.reports, &options);
        Ok(Session {
            action,
            runtime,
            llvm: self.llvm,
            wrapper: self.config.wrapper(),
            runner,
            programs: self.directory.join(TARGET),
            findings,
            told,
            environment: vec![
                ("RUSTC_WRAPPER".to_owned(), env::var("RUSTC_WRAPPER").ok()),
                (VARIABLE.to_owned(), None),
            ],
            format,
            output: self.own.told.absolute_output()?,
            collected,
            graph: self.own.told.graph.file.as_ref().map(GraphFile::absolute).transpose()?,
            accept,
            color: options.color.unwrap_or_else(|| self.color.clone()),
            quiet: self.passed.quiet,
            jobs: self.passed.jobs,
        })
    }
}

fn current() -> Result<PathBuf> {
    env::current_dir().context("cannot tell the current directory")
}

/// cargo does not know the flags that the wrapper adds, nor the pass, nor the drop-in for rayon-core. If they were others the last
/// time, what was built is removed.
fn forget_other_flags(directory: &Path, runtime: &Runtime) -> Result<()> {
    let stamp = directory.join("flags");
    let pass = match &runtime.pass {
        Some(library) => pass::digest(library)?,
        None => 0,
    };
    let flags = wrapper::flags(runtime.pass.is_some());
    let eliminations = env::var(pass::ELIMINATIONS).unwrap_or_default();
    let counts = env::var(pass::COUNTS).unwrap_or_default();
    let rayon = rayon::digest(&runtime.rayon)?;
    let flags = format!("{flags}\nrayon {rayon:x}\npass {pass:x} {eliminations} {counts}");
    if fs::read_to_string(&stamp).is_ok_and(|known| known == flags) {
        return Ok(());
    }
    let built = directory.join(TARGET);
    match fs::remove_dir_all(&built) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error)
                .with_context(|| format!("cannot remove {}, which is out of date", built.display()));
        }
        _ => {}
    }
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&stamp, flags))
        .with_context(|| format!("cannot write {}", stamp.display()))
}
