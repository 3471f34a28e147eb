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

/// Prints why the command failed.
pub fn error(what: &dyn Display) {
    print("jitscribe: error: ", what);
}

/// Prints what was skipped or corrected; the command goes on.
pub fn warning(what: impl Display) {
    print("jitscribe: warning: ", &what);
}

/// Prints a plain line for the user.
pub fn say(what: impl Display) {
    print("", &what);
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
/// summary line in any case.
pub fn progress(what: &'static str, total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{msg:24} {bar:30} {bytes}/{total_bytes} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(total).with_style(style).with_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
