//! `DAGSAN_OPTIONS=key=value:key=value`: what the user can ask of the runtime, in the way of other sanitizers.

use std::path::PathBuf;

use dagsan_core::RACE_LIMIT;
use dagsan_core::order::{self, Engine};

/// The variable.
pub const VARIABLE: &str = "DAGSAN_OPTIONS";

/// So many strands take some 50 MiB.
const GRAPH: usize = 1 << 20;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Print the options and end.
    pub help: bool,
    pub engine: &'static Engine,
    /// Where the runner waits for the findings.
    pub awaited: Option<PathBuf>,
    /// Where to write the findings, if the runner does not say.
    pub findings: Option<PathBuf>,
    /// The exit code if there are races.
    pub exitcode: i32,
    pub max_races: usize,
    /// Mebibytes of memory for the detector; 0 for no limit.
    pub max_memory: usize,
    /// Keep the code of every access, and not only that of the first to each line.
    pub exact: bool,
    /// Keep the whole call stack of every access.
    pub stacks: bool,
    /// How many strands of the graph are kept at a time, with exact places, to show what is around a race.
    pub graph: usize,
    /// Tiny tasks are contracted.
    pub tiny: bool,
    /// Reads for which others stand are not recorded.
    pub shared_reads: bool,
    /// What a task does once more, as it has just done it, is left out.
    pub repeats: bool,
    /// Threads are tasks.
    pub threads: bool,
    /// So many threads run tasks at once.
    pub workers: usize,
    /// Wait now and then, to see more of what threads do beside each other; 0 for not.
    pub delays: u64,
    pub hygiene: Hygiene,
}

/// What keeps memory that comes back as something else, and order that the tasks do not show, from being taken for
/// races. To be switched off only to see what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hygiene {
    /// Freed blocks are forgotten.
    pub heap: bool,
    /// The stacks of ended tasks are forgotten.
    pub stacks: bool,
    /// Thread-local variables are not shared.
    pub thread_locals: bool,
    /// A task that sees a value initialised once comes after the initialiser.
    pub once: bool,
    /// Acquire follows the release that it sees: `Arc` counts, flags, channels.
    pub atomics: bool,
    /// Accesses under a common lock exclude each other.
    pub locks: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            help: false,
            engine: order::default_engine(),
            awaited: None,
            findings: None,
            exitcode: 66,
            max_races: RACE_LIMIT,
            max_memory: 0,
            exact: false,
            stacks: false,
            graph: GRAPH,
            tiny: true,
            shared_reads: true,
            repeats: true,
            threads: true,
            delays: 0,
            workers: 1,
            hygiene: Hygiene {
                heap: true,
                stacks: true,
                thread_locals: true,
                once: true,
                atomics: true,
                locks: true,
            },
        }
    }
}

/// An option that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{VARIABLE}: {0}; {VARIABLE}=help=1 lists the options")]
pub struct Error(String);

/// The options that others read from the same variable: the runner of `cargo dagsan`.
const OF_OTHERS: [&str; 2] = ["format", "color"];

impl Options {
    /// Reads the text of the variable.
    pub fn parse(text: &str) -> Result<Options, Error> {
        let mut options = Options::default();
        for part in text.split([':', ' ', ',']).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(Error(format!("`{part}` is not of the form key=value")));
            };
            options.set(key, value)?;
        }
        // A whole stack of an access nearby would help nobody.
        options.exact |= options.stacks;
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let flag = || match value {
            "1" | "true" | "yes" | "on" => Ok(true),
            "0" | "false" | "no" | "off" => Ok(false),
            _ => Err(Error(format!("{key} is 0 or 1, not `{value}`"))),
        };
        let number = || value.parse::<u32>().map_err(|_| Error(format!("{key} is a number, not `{value}`")));
        let hygiene = &mut self.hygiene;
        match key {
            "help" => self.help = flag()?,
            "engine" => self.engine = order::find(value).map_err(|error| Error(error.to_string()))?,
            "findings" => self.findings = Some(value.into()),
            "exitcode" => {
                let code: Result<u8, _> = value.parse();
                let code = code.map_err(|_| Error(format!("exitcode is from 0 to 255, not `{value}`")))?;
                self.exitcode = code.into();
            }
            "max_races" => self.max_races = number()? as usize,
            "max_memory" => self.max_memory = number()? as usize,
            "sites" => {
                self.exact = match value {
                    "exact" => true,
                    // The two differ for `cargo dagsan`: is there a second run?
                    "line" | "auto" => false,
                    _ => return Err(Error(format!("sites is auto, line or exact, not `{value}`"))),
                }
            }
            "stacks" => self.stacks = flag()?,
            "graph" => self.graph = number()? as usize,
            "tiny" => self.tiny = flag()?,
            "shared_reads" => self.shared_reads = flag()?,
            "repeats" => self.repeats = flag()?,
            "threads" => self.threads = flag()?,
            "delays" => self.delays = number()?.into(),
            "workers" => match number()? as usize {
                0 => return Err(Error("workers is 1 or more".to_owned())),
                workers => self.workers = workers,
            },
            "heap" => hygiene.heap = flag()?,
            "task_stacks" => hygiene.stacks = flag()?,
            "thread_locals" => hygiene.thread_locals = flag()?,
            "once" => hygiene.once = flag()?,
            "atomics" => hygiene.atomics = flag()?,
            "locks" => hygiene.locks = flag()?,
            // For the drop-in for rayon-core, which reads it itself.
            "split" => _ = number()?,
            _ if OF_OTHERS.contains(&key) => {}
            _ => return Err(Error(format!("there is no option `{key}`"))),
        }
        Ok(())
    }

    /// The text for `help=1`.
    pub fn describe() -> String {
        let engines: Vec<&str> = order::ENGINES.iter().map(|engine| engine.name).collect();
        format!(
            "\
{VARIABLE} is a list of key=value, separated by colons:
  help=1           this text
  engine=NAME      {} (default {})
  sites=WHICH      exact: keep the place of every access; line: of the first one to each 64 bytes, which is faster; auto (default):
                   line, and `cargo dagsan` runs a program that has races once more, with exact places
  stacks=1         keep the whole call stack of every access, with sites=exact: slower, and what a second run and
                   `dagsan explain` use
  graph=N          with sites=exact, keep what is around each race in the computation graph, unless more than N strands are
                   parallel (default {GRAPH}; 0: none)
  max_races=N      keep at most N races (default {RACE_LIMIT})
  max_memory=MIB   stop checking when the detector holds more (default 0: no limit)
  exitcode=N       the exit code if there are races (default 66)
  findings=FILE    where to write what was found, for `dagsan report FILE`
  tiny=0           tell the detector of every task by itself, however small, as with sites=exact
  shared_reads=0   record the reads of every task, also of memory that nobody writes, as with sites=exact
  repeats=0        tell the detector also of what a task does once more as it has just done it, as with sites=exact
  threads=0        only the thread of the tasks is checked; other threads run beside it
  workers=N        run the second closures of rayon's joins beside the first ones, on N threads, at most 8 (default 1)
  delays=SEED      with several workers, wait now and then: for tests of DagSan itself (default 0: do not)
  split=N          cut rayon's parallel iterators into about N pieces, instead of single items
  format=json      JSON instead of text (read by `cargo dagsan`)
  color=WHEN       auto, always or never (read by `cargo dagsan`)
To see what each of them keeps from being reported, these can be switched off with =0:
  heap             freed memory is other memory when it comes back
  task_stacks      so is the stack of a task that has ended
  thread_locals    thread-local variables are not shared
  once             OnceLock, LazyLock and Once come before those who see their value
  atomics          an acquire comes after the release that it sees (Arc, flags, channels)
  locks            accesses under a common lock exclude each other
",
            engines.join(", "),
            order::default_engine().name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_are_named() {
        let options = Options::parse("engine=esp-bags:stacks=1:heap=0:exitcode=7:color=always").unwrap();
        assert_eq!((options.engine.name, options.stacks, options.exitcode), ("esp-bags", true, 7));
        assert!(!options.hygiene.heap && options.hygiene.locks);
        let exact = |text| Options::parse(text).unwrap().exact;
        assert_eq!(["", "sites=line", "sites=auto", "sites=exact"].map(exact), [false, false, false, true]);
        assert!(exact("stacks=1:sites=line"));
        for (text, part) in [
            ("stacks", "`stacks` is not of the form"),
            ("stacks=maybe", "0 or 1"),
            ("sites=some", "auto, line or exact"),
            ("speed=9", "no option `speed`"),
            ("engine=magic", "magic"),
            ("exitcode=300", "0 to 255"),
            ("max_races=many", "a number"),
        ] {
            let message = Options::parse(text).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains("help=1"), "{message}");
        }
    }

    #[test]
    fn the_help_names_every_option() {
        let help = Options::describe();
        let keys = [
            "engine",
            "sites",
            "stacks",
            "graph",
            "max_races",
            "max_memory",
            "exitcode",
            "findings",
            "heap",
            "once",
            "atomics",
        ];
        assert!(keys.iter().all(|key| help.contains(key)));
    }
}
