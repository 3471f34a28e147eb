//! Messages on standard error: errors, warnings, progress.
//!
//! Each call prints one line. Everything formatted into it (names, paths, text from files and processes) is made printable
//! ([`printable::Escape`]): a newline in a name cannot start a new line, and an escape sequence cannot control the terminal.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place that writes to standard error"
)]

use std::fmt::{Display, Write as _};
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use printable::Escape;

use crate::console;

/// Prints why the command failed.
pub fn error(what: &dyn Display) {
    print_as("error", "\x1b[1;31m", what);
}

/// Prints what was skipped or corrected; the command goes on.
pub fn warning(what: impl Display) {
    print_as("warning", "\x1b[1;33m", &what);
}

/// Prints a plain line for the user, unless only warnings and errors are wanted.
pub fn say(what: impl Display) {
    if !console::is_quiet() {
        print("", &what);
    }
}

/// Prints a line about what is done, if the user wants to know.
pub fn detail(what: impl Display) {
    if console::verbosity() > 0 {
        print("jitscribe: ", &what);
    }
}

/// Prints a line that starts with its kind, which has this colour.
fn print_as(kind: &str, colour: &str, what: &dyn Display) {
    if console::is_coloured(std::io::stderr().is_terminal()) {
        print(&format!("jitscribe: {colour}{kind}:\x1b[0m "), what);
    } else {
        print(&format!("jitscribe: {kind}: "), what);
    }
}

fn print(prefix: &str, what: &dyn Display) {
    let mut line = String::from(prefix);
    // Writing into a String cannot fail.
    let _ = write!(Escape(&mut line), "{what}");
    line.push('\n');
    // There is no other place to report that standard error cannot be written to.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// A progress bar for work on `total` bytes. It is hidden if standard error is not a terminal, since the work ends with a
/// summary line in any case, and if the user wants only warnings and errors.
pub fn progress(what: &'static str, total: u64) -> ProgressBar {
    if console::is_quiet() || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{msg:24} {bar:30} {bytes}/{total_bytes} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(total).with_style(style).with_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
