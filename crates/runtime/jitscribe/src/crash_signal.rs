//! Shows debuggers all live code before a crash signal ends the process, on a thread that waits for this.

use std::io;

use crate::host::Host;
use crate::notice::Subject;

/// Starts the thread, and installs the signal handlers.
pub(crate) fn begin(host: &Host, show_all: impl Fn() + Send + Sync + 'static) {
    match guest::crash_signal::prepare(show_all) {
        Ok(()) => guest::crash_signal::watch(),
        Err(error) => report(host, &error),
    }
}

/// Starts the thread in the child of a fork, which has inherited the handlers alone.
pub(crate) fn forked(host: &Host) {
    if let Err(error) = guest::crash_signal::forked() {
        report(host, &error);
    }
}

fn report(host: &Host, error: &io::Error) {
    host.report(
        Subject::Debuggers,
        format_args!(
            "cannot start the thread that shows code before a crash: {}",
            fallible::IoError(error)
        ),
    );
}
