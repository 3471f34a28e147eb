//! gdb and lldb, through GDB's JIT interface. All live code is shown, once a debugger is attached or it is requested.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fallible::Vec;
use jitdump::extension::control;
use publish_gdb::{AfterFork, Options};
use unwind_info::{Error, Machine, Reader, Unwind, absolute_for};

use super::Publisher;
use crate::host::Host;
use crate::image::{logged_for, target};
use crate::log::{Log, LogEntry, MACHINE};
use crate::notice::Subject;
use jit_code::Code;

/// GDB's interface; created by the first request.
#[derive(Debug)]
pub(super) struct Gdb {
    interface: OnceLock<publish_gdb::Gdb>,
    /// Whether the allocation of the interface failed.
    is_refused: AtomicBool,
    /// Set once it is started.
    host: OnceLock<HostRef>,
    /// Whether it was reported how to set a breakpoint in code with a colon in its name.
    has_hinted: AtomicBool,
}

/// Its content would not be of interest.
struct HostRef(&'static Host);

impl std::fmt::Debug for HostRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Host")
    }
}

impl Gdb {
    pub(super) const fn new() -> Self {
        Self {
            interface: OnceLock::new(),
            is_refused: AtomicBool::new(false),
            host: OnceLock::new(),
            has_hinted: AtomicBool::new(false),
        }
    }

    /// Runs `work`, which allocates. If an allocation fails, nothing is shown from then on.
    fn attempt(&self, work: impl FnOnce()) {
        if fallible::attempt(work).is_err()
            && let Some(interface) = self.interface.get()
        {
            interface.give_up();
        }
    }

    /// Reports, once, how to set a breakpoint in code whose name gdb takes for a place in a file.
    fn hint(&self, name: &[u8]) {
        if !is_like_place(name) || self.has_hinted.swap(true, Relaxed) {
            return;
        }
        if let Some(HostRef(host)) = self.host.get() {
            let name = printable::Escaped(name);
            host.report(
                Subject::Debuggers,
                format_args!(
                    "gdb's `break` takes what is behind a colon for a line; this sets a breakpoint: break -function '{name}'"
                ),
            );
        }
    }

    fn show(&self, entry: LogEntry, code: &Code<'_>) {
        let Some(interface) = self.interface.get() else { return };
        self.hint(code.name);
        if let Some(symfile) = code.symfile {
            return interface.load_given(key(entry), code, symfile);
        }
        match code.unwind.zip(Machine::from_elf(MACHINE)) {
            // A section of the runtime.
            Some((Unwind::EhFrame(_), _)) | None => interface.load(key(entry), code),
            Some((unwind, machine)) => {
                let mut frames = Vec::with_capacity(128);
                // Rows that cannot be encoded are left out; names and lines are shown.
                let (at, size) = (code.address, code.size);
                let to = frames.inner_mut();
                let encoded = absolute_for(Reader::Debugger, machine, at, size, &unwind, to);
                if encoded == Err(Error::Memory) {
                    fallible::refuse();
                }
                interface.load_with_frames(key(entry), code, &frames);
            }
        }
    }

    fn show_all(&self, interface: &publish_gdb::Gdb, log: &Log) {
        self.attempt(|| {
            let alive = log.positions();
            interface.load_many(|load| {
                for &(position, index, _) in &alive {
                    if let Some(dump) = log.dump_of(position, index) {
                        logged_for(Reader::Debugger, &dump, |code| {
                            self.hint(code.name);
                            load(key((position, index)), code);
                        });
                    }
                }
            });
            // Another thread may have unloaded one before it was shown.
            for (position, index, address) in alive {
                if log.living(position, index).is_none() {
                    interface.unload(key((position, index)), address);
                }
            }
        });
    }
}

impl Publisher for Gdb {
    fn subject(&self) -> Subject {
        Subject::Debuggers
    }

    fn request_bit(&self) -> u32 {
        control::GDB
    }

    /// False if it is off, or if an allocation failed, now or before.
    fn start(&self, host: &'static Host, log: &Log) -> bool {
        if !host.settings.gdb {
            return false;
        }
        if let Some(interface) = self.interface.get() {
            return !interface.is_off();
        }
        let options = Options::default();
        let options = if host.settings.gdb_synchronous { options.each() } else { options };
        let Ok(new) = publish_gdb::Gdb::create(target(), options) else {
            self.is_refused.store(true, Relaxed);
            return false;
        };
        // From here on, other threads show the code that they load. The code that is already in the log follows.
        let _ = self.host.set(HostRef(host));
        let interface = self.interface.get_or_init(|| new);
        self.show_all(interface, log);
        !interface.is_off()
    }

    fn is_on(&self) -> bool {
        self.interface.get().is_some()
    }

    fn load(&self, _: &Log, code: &Code<'_>, entry: Option<LogEntry>) {
        if let Some(entry) = entry {
            self.attempt(|| self.show(entry, code));
        }
    }

    fn moved(&self, log: &Log, from: LogEntry, to: Option<LogEntry>, _: u64) {
        self.unload(log, from);
        let Some((interface, to)) = self.interface.get().zip(to) else { return };
        self.attempt(|| {
            if let Some(dump) = log.dump_of(to.0, to.1) {
                logged_for(Reader::Debugger, &dump, |code| interface.load(key(to), code));
            }
        });
    }

    fn unload(&self, log: &Log, entry: LogEntry) {
        if let Some((interface, (address, _))) =
            self.interface.get().zip(log.place(entry.0, entry.1))
        {
            interface.unload(key(entry), address);
        }
    }

    fn forked(&self, log: &Log) {
        if let Some(interface) = self.interface.get()
            && interface.forked() == AfterFork::MustReload
        {
            self.show_all(interface, log);
        }
    }

    fn take_refusal(&self) -> bool {
        let is_refused = self.is_refused.load(Relaxed) && self.is_refused.swap(false, Relaxed);
        self.interface.get().is_some_and(publish_gdb::Gdb::take_refusal) || is_refused
    }
}

/// Whether gdb's `break` takes the name for `FILE:LINE`: it has a colon that is not part of `::`.
fn is_like_place(name: &[u8]) -> bool {
    name.chunk_by(|one, next| one == next).any(|run| run == b":")
}

/// The key of a code in the interface.
fn key((position, index): LogEntry) -> u64 {
    u64::from(position.get()) << 32 | u64::from(index)
}

#[cfg(test)]
mod tests {
    use super::is_like_place;

    #[test]
    fn a_single_colon_makes_a_place() {
        for (name, expected) in [
            ("main", false),
            ("wasm[0]::function[3]::add", false),
            ("lua:main:12", true),
            ("ns::f:3", true),
            (":", true),
            ("", false),
        ] {
            assert_eq!(is_like_place(name.as_bytes()), expected, "{name}");
        }
    }
}
