//! Lines on the terminal about work that takes long. They go away with it. Where standard error is no terminal there are none.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A line, until it is dropped.
pub struct Line(ProgressBar);

/// How often the time on a line changes.
const TICK: Duration = Duration::from_millis(500);

/// About work of which no more is known than that it goes on.
pub fn busy(what: &'static str) -> Line {
    Line::new(ProgressBar::no_length(), "{msg}, {elapsed}", what)
}

/// About so many things, which are done one after the other.
pub fn counted(total: usize, what: &'static str) -> Line {
    Line::new(ProgressBar::new(total as u64), "[{bar:24}] {pos} of {len} {msg}, {elapsed}", what)
}

impl Line {
    fn new(bar: ProgressBar, template: &str, what: &'static str) -> Line {
        let bar = if stderr().is_terminal() { bar } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(TICK);
        Line(bar)
    }

    /// One more is done; what is said about it comes above the line.
    pub fn done<T>(&self, say: impl FnOnce() -> T) -> T {
        self.0.inc(1);
        self.0.suspend(say)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
