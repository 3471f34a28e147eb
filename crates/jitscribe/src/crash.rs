//! What debuggers are shown before a crash signal ends the process: all that is alive, by a thread that waits for it.
//!
//! Without the feature `gdb` there is nothing behind the same names.

use crate::scribe::Shared;

/// From now on.
#[cfg(feature = "gdb")]
pub(crate) fn begin(shared: &'static Shared) {
    match crash_signal::prepare(move || shared.show_all()) {
        Ok(()) => crash_signal::watch(),
        Err(error) => complain(shared, &error),
    }
}

/// In the child of a fork, which has the handlers and no thread.
#[cfg(feature = "gdb")]
pub(crate) fn forked(shared: &Shared) {
    if let Err(error) = crash_signal::forked() {
        complain(shared, &error);
    }
}

#[cfg(feature = "gdb")]
fn complain(shared: &Shared, error: &std::io::Error) {
    use crate::notice::Subject;
    shared.say(
        Subject::Debuggers,
        format_args!("a crash shows no code, for want of a thread: {error}"),
    );
}

#[cfg(not(feature = "gdb"))]
pub(crate) fn begin(_: &'static Shared) {}

#[cfg(not(feature = "gdb"))]
pub(crate) fn forked(_: &Shared) {}
