//! Standard input for a program that may be run twice.
//!
//! A file is rewound. What comes through a pipe goes through our hands, and is kept in a file. A terminal is left to the first run: nobody
//! types everything twice, and the second one finds the end of the input.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::thread;

use anyhow::{Context, Result};

/// Where it comes from.
pub enum Input {
    /// A file, from this position on.
    File(File, u64),
    /// A pipe, and where what was read from it is kept.
    Pipe { from: File, keep: File, kept: File },
    /// Something that cannot be had twice.
    Once,
}

impl Input {
    /// What this process has. A pipe needs a new file, which has no name afterwards.
    pub fn of_this_process(keep: &Path) -> Result<Input> {
        // Who has closed it has none.
        let Ok(from) = io::stdin().as_fd().try_clone_to_owned() else { return Ok(Input::Once) };
        let mut from = File::from(from);
        let Ok(metadata) = from.metadata() else { return Ok(Input::Once) };
        let kind = metadata.file_type();
        if kind.is_file() {
            let position = from.stream_position().context("cannot tell the position in standard input")?;
            return Ok(Input::File(from, position));
        }
        if !kind.is_fifo() && !kind.is_socket() {
            return Ok(Input::Once);
        }
        let cannot = || format!("cannot write {}", keep.display());
        let file = OpenOptions::new().write(true).create_new(true).open(keep).with_context(cannot)?;
        let kept = File::open(keep).with_context(cannot)?;
        fs::remove_file(keep).with_context(cannot)?;
        Ok(Input::Pipe { from, keep: file, kept })
    }

    /// For the first run.
    pub fn first(&self) -> Stdio {
        match self {
            Input::File(..) | Input::Once => Stdio::inherit(),
            Input::Pipe { .. } => Stdio::piped(),
        }
    }

    /// The first run has started, with this end of a pipe. Its input flows until one side has had enough: a thread waits for more, and ends
    /// with the process.
    pub fn flow(&self, to: Option<ChildStdin>) -> Result<()> {
        let (Input::Pipe { from, keep, .. }, Some(mut to)) = (self, to) else { return Ok(()) };
        let clone = |file: &File| file.try_clone().context("cannot read standard input");
        let (mut from, mut keep) = (clone(from)?, clone(keep)?);
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            // A program that does not read any more, and one that is gone, are no errors of ours; without room to keep it, the
            // second run goes without.
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                if keep.write_all(&buffer[..read]).and_then(|()| to.write_all(&buffer[..read])).is_err() {
                    break;
                }
            }
        });
        Ok(())
    }

    /// For the second run.
    pub fn second(self) -> Stdio {
        match self {
            Input::File(mut file, position) => match file.seek(SeekFrom::Start(position)) {
                Ok(_) => file.into(),
                Err(_) => Stdio::null(),
            },
            Input::Pipe { kept, .. } => kept.into(),
            Input::Once => Stdio::null(),
        }
    }
}
