//! What a publisher does.

use crate::host::Host;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// Passes code on to one tool.
///
/// The methods are called by any thread, at the same time, with signals held, unless it [does not need
/// that](Self::must_hold_signals). They may take locks of their own and allocate by the types of the crate `fallible`. They never
/// fail into the runtime: a publisher that cannot continue turns itself off and reports it to the [`Host`].
///
/// A code may be loaded and unloaded by other threads while [`start`](Self::start) publishes what is alive, and it may be passed
/// to `unload` or `moved` without ever having been passed to `load`.
pub(crate) trait Publisher: Sync {
    /// The subject of its notices.
    fn subject(&self) -> Subject;

    /// The bit of the log's control word that requests it (`jitdump::extension::control`), or 0 if it cannot be requested from
    /// outside the process. While the bit is clear, code is not passed to [`load`](Self::load).
    fn request_bit(&self) -> u32 {
        0
    }

    /// Applies the settings. Called once, when the scribe is made.
    fn prepare(&self, _host: &'static Host) {}

    /// Publishes what is alive in the log, and from now on all that is loaded. Called for every request, so it may be on already.
    /// False if this is not possible; the request is then withdrawn.
    fn start(&self, _host: &'static Host, _log: &Log) -> bool {
        self.is_on()
    }

    /// Whether it publishes: it was started, and has not given up.
    fn is_on(&self) -> bool;

    /// Whether signals must be held during each call, even if no handler is known that could run. Otherwise they are not held if
    /// all publishers that are on agree: the two system calls take as long as writing a line. A handler that was installed in
    /// the last milliseconds may then interrupt a call, stop the thread, or announce code. It must not wait for itself, nor
    /// another thread for ever.
    fn must_hold_signals(&self) -> bool {
        true
    }

    /// A code was loaded. `entry` is `None` if the log had no space for it.
    fn load(&self, log: &Log, code: &Code<'_>, entry: Option<LogEntry>);

    /// The code of the entry `from` moves to `address`. It is still in the log, and so is its new entry `to`; `None` if the log
    /// had no space.
    fn moved(&self, log: &Log, from: LogEntry, to: Option<LogEntry>, address: u64);

    /// The code of `entry` is about to be unloaded. It is still in the log.
    fn unload(&self, log: &Log, entry: LogEntry);

    /// Whether [`ended`](Self::ended) must be called when the code of `entry`, which is about to be unloaded or moved, has ended in
    /// the log.
    fn awaits_end(&self, _log: &Log, _entry: LogEntry) -> bool {
        false
    }

    /// A code has ended in the log. The runtime does not reuse its memory before this returns.
    fn ended(&self) {}

    /// The process is a fork's child, whose log is complete.
    fn forked(&self, log: &Log);

    /// Whether memory was refused since the last call, so that it has turned itself off.
    fn take_refusal(&self) -> bool {
        false
    }
}
