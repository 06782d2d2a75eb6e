//! The command line of a C compiler, as far as it matters here: what is asked for, and what is not passed on.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context, Result};

/// What the compiler is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To tell something about itself, or nothing that we have to do with.
    Ask,
    /// To preprocess, or to check.
    Preprocess,
    /// To compile.
    Compile,
    /// To link, and perhaps to compile before.
    Link,
}

/// One call of the compiler.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub mode: Mode,
    /// Is it C or C++ with OpenMP?
    pub openmp: bool,
    pub shared: bool,
    pub is_static: bool,
    /// A sanitizer that is not ThreadSanitizer, whose place we take.
    pub sanitizer: Option<String>,
    has_sources: bool,
    /// What goes to the compiler.
    pub passed: Vec<OsString>,
}

/// Options whose next argument is theirs.
const WITH_VALUE: [&str; 27] = [
    "-o",
    "-x",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-Xclang",
    "-Xlinker",
    "-Xpreprocessor",
    "-Xassembler",
    "-mllvm",
    "-arch",
    "-target",
    "-T",
    "-u",
    "-z",
];

/// Libraries of other runtimes of OpenMP.
const RUNTIMES: [&str; 4] = ["omp", "gomp", "iomp5", "tsan"];

const SOURCES: [&str; 13] =
    [".c", ".cc", ".cpp", ".cxx", ".C", ".c++", ".i", ".ii", ".h", ".hpp", ".hh", ".m", ".mm"];

impl Call {
    pub fn read(given: &[OsString]) -> Result<Call> {
        let mut call = Call {
            mode: Mode::Link,
            openmp: false,
            shared: false,
            is_static: false,
            sanitizer: None,
            has_sources: false,
            passed: Vec::new(),
        };
        let (mut inputs, mut asks, mut language) = (false, false, false);
        let all = expanded(given)?;
        let mut rest = all.into_iter();
        while let Some(argument) = rest.next() {
            let text = argument.to_string_lossy().into_owned();
            match text.as_str() {
                "-c" | "-S" => call.mode = call.mode.min_of(Mode::Compile),
                "-E" | "-M" | "-MM" | "-fsyntax-only" => call.mode = Mode::Preprocess,
                "-shared" | "--shared" => call.shared = true,
                "-static" | "--static" | "-static-pie" => call.is_static = true,
                "-fno-openmp" => {
                    call.openmp = false;
                    continue;
                }
                "-" => inputs = true,
                "-x" => language = true,
                "-v" | "-###" => asks = true,
                _ if is_openmp(&text) => {
                    call.openmp = true;
                    continue;
                }
                _ if text.strip_prefix("-l").is_some_and(|name| RUNTIMES.contains(&name)) => continue,
                _ if text.starts_with("-fsanitize=") => {
                    let names = text.split_once('=').map_or("", |(_, names)| names);
                    if let Some(other) = names.split(',').find(|name| *name != "thread") {
                        call.sanitizer = Some(other.to_owned());
                    }
                    continue;
                }
                _ if !text.starts_with('-') => {
                    inputs = true;
                    call.has_sources |= SOURCES.iter().any(|ending| text.ends_with(ending));
                }
                _ => {}
            }
            call.passed.push(argument);
            if WITH_VALUE.contains(&text.as_str()) {
                call.passed.extend(rest.next());
            }
        }
        call.has_sources |= inputs && language;
        // Libraries alone can be linked, if they are told to be: -lfoo -o program.
        let has_library = call.passed.iter().any(|argument| argument.to_string_lossy().starts_with("-l"));
        if !inputs && (asks || !has_library) {
            call.mode = Mode::Ask;
        }
        Ok(call)
    }

    /// Is anything compiled?
    pub fn compiles(&self) -> bool {
        match self.mode {
            Mode::Compile => true,
            Mode::Link => self.has_sources,
            Mode::Ask | Mode::Preprocess => false,
        }
    }
}

impl Mode {
    /// The one that stops earlier.
    fn min_of(self, other: Mode) -> Mode {
        if self == Mode::Preprocess { self } else { other }
    }
}

fn is_openmp(text: &str) -> bool {
    matches!(
        text,
        "-fopenmp" | "-qopenmp" | "-openmp" | "-fopenmp=libomp" | "-fopenmp=libiomp5" | "-fopenmp=libgomp"
    )
}

/// The arguments, with those in response files.
fn expanded(given: &[OsString]) -> Result<Vec<OsString>> {
    let mut all = Vec::new();
    for argument in given {
        match argument.to_str().and_then(|text| text.strip_prefix('@')) {
            Some(file) => {
                let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
                let inner: Vec<OsString> = words(&text).into_iter().map(OsString::from).collect();
                all.extend(expanded(&inner)?);
            }
            None => all.push(argument.clone()),
        }
    }
    Ok(all)
}

/// The words of a response file: quotes and backslashes as in a shell.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Call {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Call::read(&arguments).unwrap()
    }

    #[test]
    fn what_is_asked_for() {
        for (line, mode) in [
            ("--version", Mode::Ask),
            ("-v", Mode::Ask),
            ("-dumpmachine", Mode::Ask),
            ("-print-prog-name=ld", Mode::Ask),
            ("-c a.c", Mode::Compile),
            ("-S -O2 a.c -o a.s", Mode::Compile),
            ("-E a.c", Mode::Preprocess),
            ("-MM -c a.c", Mode::Preprocess),
            ("-MMD -MF a.d -c a.c", Mode::Compile),
            ("a.o -o a", Mode::Link),
            ("-o conftest conftest.c -lm", Mode::Link),
            ("-v a.c", Mode::Link),
            ("-x c -", Mode::Link),
        ] {
            assert_eq!(call(line).mode, mode, "{line}");
        }
        assert!(call("a.c").compiles() && !call("a.o b.a").compiles() && call("-x c -").compiles());
    }

    #[test]
    fn the_driver_does_not_hear_of_openmp() {
        let line = call("-fopenmp -O2 a.c -lgomp -lm -o omp -fsanitize=thread");
        assert!(line.openmp && line.sanitizer.is_none());
        assert_eq!(line.passed, ["-O2", "a.c", "-lm", "-o", "omp"]);
        assert!(!call("-fopenmp-simd a.c").openmp && !call("-fopenmp -fno-openmp a.c").openmp);
        assert_eq!(call("-fsanitize=thread,address a.c").sanitizer, Some("address".to_owned()));
        assert!(!call("-o -fopenmp a.c").openmp, "the name of a file");
    }

    #[test]
    fn words_of_response_files_are_those_of_a_shell() {
        assert_eq!(words("-c  'a b.c' \"c\\\"d\"\n-DX=\\ y"), ["-c", "a b.c", "c\"d", "-DX= y"]);
        assert_eq!(words(" \n"), [""; 0]);
    }
}
