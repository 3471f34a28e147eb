//! What is said on standard error: errors, warnings, progress.

#![allow(clippy::print_stderr, reason = "this is the one place that writes to standard error")]

use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The command failed.
pub fn error(what: &dyn Display) {
    eprintln!("jitscribe: error: {what}");
}

/// Something was left out or put right; the command goes on.
pub fn warning(what: impl Display) {
    eprintln!("jitscribe: warning: {what}");
}

/// A plain line for the person at the terminal.
pub fn say(what: impl Display) {
    eprintln!("{what}");
}

/// A bar for work on `total` bytes; nothing where standard error is no terminal, since the work
/// ends with a summary line in any case.
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
