//! Progress and warnings in the style of cargo, on standard error.

use std::io::Write;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use dagsan_report::clean_message;

/// Standard error, with or without colours: `auto`, `always` or `never`, as cargo has it.
pub fn stderr(color: &str) -> AutoStream<std::io::Stderr> {
    AutoStream::new(std::io::stderr(), choice(color))
}

/// Standard output, likewise.
pub fn stdout(color: &str) -> AutoStream<std::io::Stdout> {
    AutoStream::new(std::io::stdout(), choice(color))
}

fn choice(color: &str) -> ColorChoice {
    match color {
        "always" => ColorChoice::Always,
        "never" => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// `   Compiling dagsan runtime`.
pub fn progress(color: &str, verb: &str, what: &str) {
    let style = Style::new().bold().fg_color(Some(AnsiColor::Green.into()));
    say(color, &format!("{style}{verb:>12}{style:#} {what}"));
}

/// `warning: …`.
pub fn warning(color: &str, text: &str) {
    let style = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    say(color, &format!("{style}warning{style:#}: {}", clean_message(text)));
}

/// `note: …`.
pub fn note(color: &str, text: &str) {
    let style = Style::new().bold();
    say(color, &format!("{style}note{style:#}: {}", clean_message(text)));
}

fn say(color: &str, line: &str) {
    // A terminal that has gone away cannot be told so.
    let _ = writeln!(stderr(color), "{line}");
}
