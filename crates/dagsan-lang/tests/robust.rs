//! No text makes the compiler panic, and no program the interpreter.
//!
//! Arbitrary text, random sequences of the language's tokens, and programs of the corpus with some tokens deleted,
//! doubled, swapped or replaced. What is said about them must point into the text.

mod support;

use std::sync::LazyLock;

use dagsan_core::{Detector, order};
use dagsan_lang::{CompileOptions, Eliminations, End, Limits, Program, Span};
use proptest::prelude::*;
use proptest::sample::select;
use support::corpus;

const TOKENS: &[&str] = &[
    "shared",
    "promise",
    "region",
    "let",
    "var",
    "proc",
    "main",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    "=",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "<-",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "&&",
    "||",
    "..",
    "if",
    "else",
    "while",
    "for",
    "forall",
    "forasync",
    "in",
    "async",
    "spawn",
    "future",
    "finish",
    "isolated",
    "sync",
    "set",
    "get",
    "post",
    "then",
    "await",
    "ewait",
    "print",
    "assert",
    "skip",
    "return",
    "new",
    "len",
    "true",
    "false",
    "null",
    "x",
    "y",
    "a",
    "f",
    "p",
    "r",
    "0",
    "1",
    "2",
    "7",
    "9223372036854775807",
    "\"text\"",
    "// note\n",
    "é",
    "\"",
    "@",
];

/// Pieces from which more of a soup gets through the parser.
const PHRASES: &[&str] = &[
    "proc main() {",
    "proc f(x) {",
    "shared x, a[4];",
    "promise p;",
    "region r;",
    "}",
    "{",
    "x = x + 1;",
    "a[x] = 1;",
    "async {",
    "finish {",
    "forall i in 0..3 {",
    "for i in 0..3 {",
    "while x < 3 {",
    "if x == 0 {",
    "} else {",
    "isolated {",
    "future g = f(1);",
    "get g;",
    "set p;",
    "get p;",
    "post r <- f(2) then v {",
    "await r;",
    "ewait r;",
    "let y = new [3];",
    "y[1] = x;",
    "spawn f(3);",
    "sync;",
    "return;",
    "return x;",
    "print x;",
    "f(x);",
    "};",
];

fn check_span(source: &str, span: Span, what: &str) -> Result<(), TestCaseError> {
    let (start, end) = (span.start as usize, span.end as usize);
    prop_assert!(
        start <= end && source.get(start..end).is_some(),
        "{what} {start}..{end} is not in the text"
    );
    Ok(())
}

/// Compiles the text, with and without eliminations, and runs what compiles.
fn survive(source: &str) -> Result<(), TestCaseError> {
    let limits = Limits { steps: 200_000, words: 1 << 16 };
    for eliminations in [Eliminations::all(), Eliminations::none()] {
        match Program::compile(source, &CompileOptions { eliminations, checks: true, count: true }) {
            Err(diagnostics) => {
                prop_assert!(!diagnostics.is_empty(), "rejected without a reason");
                for diagnostic in diagnostics {
                    prop_assert!(!diagnostic.message.is_empty());
                    check_span(source, diagnostic.span, &diagnostic.message)?;
                    for (span, label) in &diagnostic.others {
                        check_span(source, *span, label)?;
                    }
                }
            }
            Ok(program) => {
                let mut detector = Detector::new(order::default_engine(), Default::default());
                let run = program.run(&limits, &mut detector);
                match &run.end {
                    End::Failed(failure) => check_span(source, failure.span, &failure.message)?,
                    End::Deadlock(blocked) => {
                        prop_assert!(!blocked.is_empty(), "a deadlock of nobody");
                        for task in blocked {
                            check_span(source, task.span, &task.waits_for)?;
                        }
                    }
                    End::Finished => {}
                    // `dag` supports everything, and the interpreter sends well-formed streams only.
                    end => prop_assert!(false, "{end:?}"),
                }
                prop_assert!(detector.finish().is_ok());
                for race in detector.races() {
                    prop_assert!(!run.location_names(race.location).is_empty());
                    for site in [race.first.site, race.second.site] {
                        check_span(source, run.site_span(site), "a site")?;
                    }
                }
                for task in &run.tasks {
                    check_span(source, task.created, "the creation of a task")?;
                }
            }
        }
    }
    Ok(())
}

/// Cuts a text into tokens, about: words, numbers, spaces, and single signs. All of them give the text again.
fn tokens(source: &str) -> Vec<&str> {
    let class = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 0,
        _ if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (at, c) in source.char_indices() {
        let now = class(c);
        if before.is_some_and(|before| before != now || now == 2) {
            tokens.push(&source[start..at]);
            start = at;
        }
        before = Some(now);
    }
    tokens.push(&source[start..]);
    tokens
}

static SOURCES: LazyLock<Vec<String>> = LazyLock::new(|| {
    corpus().into_iter().map(|case| case.source).filter(|source| source.len() < 3_000).collect()
});

/// What is done to a token, by its place: places are taken modulo the number of tokens.
#[derive(Debug, Clone)]
enum Mutation {
    Delete(usize),
    Double(usize),
    Swap(usize, usize),
    Replace(usize, &'static str),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<usize>().prop_map(Mutation::Delete),
        any::<usize>().prop_map(Mutation::Double),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (any::<usize>(), select(TOKENS)).prop_map(|(at, token)| Mutation::Replace(at, token)),
    ]
}

fn mutate(source: &str, mutations: &[Mutation]) -> String {
    let mut tokens = tokens(source);
    for mutation in mutations {
        let count = tokens.len().max(1);
        match *mutation {
            _ if tokens.is_empty() => {}
            Mutation::Delete(at) => _ = tokens.remove(at % count),
            Mutation::Double(at) => tokens.insert(at % count, tokens[at % count]),
            Mutation::Swap(a, b) => tokens.swap(a % count, b % count),
            Mutation::Replace(at, token) => tokens[at % count] = token,
        }
    }
    tokens.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text(source in any::<String>()) {
        survive(&source)?;
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(select(TOKENS), 0..60)) {
        survive(&tokens.join(" "))?;
    }

    #[test]
    fn phrase_soup(phrases in prop::collection::vec(select(PHRASES), 0..20)) {
        survive(&format!("shared x, a[4]; promise p; proc f(x) {{ return x; }} proc main() {{ {}", phrases.join(" ")))?;
    }

    #[test]
    fn mutated_programs(source in 0..SOURCES.len(), mutations in prop::collection::vec(mutation(), 1..5)) {
        survive(&mutate(&SOURCES[source], &mutations))?;
    }
}

#[test]
fn tokens_give_the_text_again() {
    for source in SOURCES.iter() {
        assert_eq!(tokens(source).concat(), *source);
    }
}

#[test]
fn deep_nesting_is_refused_or_runs() {
    for (open, close) in [("(", ")"), ("{", "}"), ("!", ""), ("-", ""), ("if true {", "}"), ("async {", "}")]
    {
        for depth in [10, 100, 10_000, 200_000] {
            let (opened, closed) = (open.repeat(depth), close.repeat(depth));
            let inside = if open.contains('{') { "" } else { "print " };
            let end = if open.contains('{') { "skip;" } else { "1" };
            let after = if open.contains('{') { "" } else { ";" };
            let source = format!("proc main() {{ {inside}{opened}{end}{closed}{after} }}");
            survive(&source).unwrap_or_else(|error| panic!("{depth} of `{open}`: {error}"));
        }
    }
}
