//! Completions for shells and manual pages, made of the command lines that clap knows.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::native;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  dagsan completions bash > ~/.local/share/bash-completion/completions/dagsan\n  \
                        dagsan completions fish cargo-dagsan > ~/.config/fish/completions/cargo-dagsan.fish"
)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: Shell,

    /// Of which command
    #[arg(value_enum, default_value_t = Which::Dagsan)]
    pub of: Which,
}

/// Write the manual pages to a directory
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dagsan man ~/.local/share/man/man1 && man dagsan-check")]
pub struct ManArguments {
    /// Where to; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// The commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    Dagsan,
    CargoDagsan,
}

/// Completions.
pub fn completions(arguments: &CompletionsArguments) -> Vec<u8> {
    let (mut command, name) = match arguments.of {
        Which::Dagsan => (Cli::command(), "dagsan"),
        Which::CargoDagsan => (native::command_line(), "cargo-dagsan"),
    };
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    text
}

/// Writes a page for each command.
pub fn man(arguments: &ManArguments) -> Result<()> {
    let directory = &arguments.directory;
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut dagsan = Cli::command();
    // Subcommands know their whole names only then.
    dagsan.build();
    page(&dagsan, "dagsan", directory)?;
    for command in dagsan.get_subcommands().filter(|command| command.get_name() != "help") {
        page(command, &format!("dagsan-{}", command.get_name()), directory)?;
    }
    page(&native::command_line(), "cargo-dagsan", directory)
}

fn page(command: &clap::Command, name: &str, directory: &Path) -> Result<()> {
    let mut text = Vec::new();
    // The names of pages are known while the program runs only; clap keeps them for ever.
    let command = command.clone().name(name.to_owned().leak() as &'static str);
    Man::new(command).render(&mut text)?;
    let path = directory.join(format!("{name}.1"));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
