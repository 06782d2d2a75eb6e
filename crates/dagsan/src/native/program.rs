//! `dagsan run`: a program that `dagsan cc` has linked is run, and reported on.

use std::env;
use std::path::Path;

use anyhow::{Context, Result, bail};
use dagsan_report::Project;

use crate::accept::Accepting;
use crate::cli::{GraphFile, RunArguments};
use crate::native::session::{Action, Runtime, Session};
use crate::native::{cc, collected, findings, interrupt, runner, sources, told};
use crate::reports;

/// Runs it, and says how to end.
pub fn run(arguments: &RunArguments) -> Result<u8> {
    let (program, rest) = arguments.program.split_first().context("there is no program to run")?;
    let path = Path::new(program);
    if path.components().count() > 1 && !path.exists() {
        bail!("{} is not there: build it with `dagsan cc` first", path.display());
    }
    if path.components().count() == 1 && !is_in_search_path(path) {
        match path.is_file() {
            true => bail!("{0} is not in PATH: did you mean ./{0}?", path.display()),
            false => bail!("{} is neither here nor in PATH: build it with `dagsan cc` first", path.display()),
        }
    }
    if path.is_dir() {
        bail!("{} is a directory: name a program that `dagsan cc` has linked", path.display());
    }
    let asked = &arguments.told;
    let options = findings::Options::from_environment();
    let cache = cc::cache()?;
    let directory = cache.join(sources::FOUND);
    let color = match arguments.color {
        clap::ColorChoice::Auto => options.color.clone().unwrap_or_else(|| "auto".to_owned()),
        clap::ColorChoice::Always => "always".to_owned(),
        clap::ColorChoice::Never => "never".to_owned(),
    };
    let current = env::current_dir().context("cannot tell the current directory")?;
    let accept = asked.accept.absolute(&current, &[])?;
    asked.check_files(&accept, [path])?;
    let accepting = Accepting::load(&accept, Project::around(&current))?;
    let (format, collected) = collected::formats(&asked.reports, &options);
    let nothing = Runtime {
        library: cache.clone(),
        directories: Vec::new(),
        rayon: cache.clone(),
        pass: None,
        beside: None,
    };
    let session = Session {
        action: Action::Run,
        runtime: nothing,
        llvm: 0,
        wrapper: None,
        runner: Vec::new(),
        programs: cache,
        told: directory.join(format!("told.{}", std::process::id())),
        findings: directory,
        environment: Vec::new(),
        format,
        output: asked.absolute_output()?,
        collected,
        graph: asked.graph.file.as_ref().map(GraphFile::absolute).transpose()?,
        accept,
        color,
        quiet: false,
        jobs: None,
    };
    findings::prepare(&session)?;
    interrupt::listen()?;
    let code = runner::run_whole(&session, program, rest)?;
    let told = told::all(&session)?;
    let written = collected::write(&session, &collected::files(&asked.reports)?, &told);
    let accepted = collected::accept(&accepting, &told, &session.color);
    reports::all([written, accepted].into_iter().filter_map(Result::err).collect())?;
    Ok(code)
}

fn is_in_search_path(name: &Path) -> bool {
    let directories = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&directories).any(|directory| directory.join(name).is_file())
}
