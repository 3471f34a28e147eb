//! gdb and lldb, through GDB's JIT interface.
//!
//! All live code is shown, once a debugger is attached or it is requested. A debugger that reads the log itself is shown only the
//! code that its breakpoints are in.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fallible::{Refused, Vec};
use jitdump::extension::control;
use publish_gdb::{AfterFork, Options};
use unwind_info::{Error, Machine, Unwind};

use super::Publisher;
use crate::host::Host;
use crate::image::{logged, target};
use crate::log::{BREAKPOINTS_ROOM, Log, LogEntry, MACHINE, has_breakpoint};
use crate::notice::Subject;
use jit_code::Code;

/// GDB's interface; created by the first request.
#[derive(Debug)]
pub(super) struct Gdb {
    interface: OnceLock<publish_gdb::Gdb>,
    /// Whether all code is shown, and not only what breakpoints are in.
    shows_all: AtomicBool,
    /// Whether the allocation of the interface failed.
    is_refused: AtomicBool,
}

impl Gdb {
    pub(super) const fn new() -> Self {
        Self {
            interface: OnceLock::new(),
            shows_all: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
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

    /// The interface, created by the first request; `None` if the allocation failed.
    fn opened(&self, host: &Host) -> Option<&publish_gdb::Gdb> {
        if self.interface.get().is_none() {
            let options = Options::default();
            let options = if host.settings.gdb_each { options.each() } else { options };
            match publish_gdb::Gdb::create(target(), options) {
                // From here on, other threads show the code that they load.
                Ok(new) => drop(self.interface.set(new)),
                Err(Refused) => self.is_refused.store(true, Relaxed),
            }
        }
        self.interface.get()
    }

    fn show(interface: publish_gdb::Gdb, entry: LogEntry, code: &Code<'_>) {
        match code.unwind.zip(Machine::from_elf(MACHINE)) {
            // A section of the runtime.
            Some((Unwind::EhFrame(_), _)) | None => interface.load(key(entry), code),
            Some((unwind, machine)) => {
                let mut frames = Vec::with_capacity(128);
                // Rows that cannot be encoded are left out; names and lines are shown.
                let (at, size) = (code.address, code.size);
                let encoded = unwind_info::absolute(machine, at, size, &unwind, frames.inner_mut());
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
                        logged(&dump, |code| load(key((position, index)), code));
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

    fn request_bits(&self) -> u32 {
        control::GDB | control::BREAKPOINTS
    }

    /// Registers the address of the log. Debuggers with the reader need nothing else.
    fn prepare(&self, host: &'static Host) {
        let Some(log) = &host.log else { return };
        let (address, size) = log.mapped();
        if let Err(Refused) = publish_gdb::register_log_locator(target(), address, size) {
            host.report_out_of_memory(Subject::Debuggers);
        }
    }

    /// False if an allocation failed, now or before.
    fn start(&self, requested: u32, host: &'static Host, log: &Log) -> bool {
        let Some(interface) = self.opened(host) else { return false };
        let all = requested & control::GDB != 0;
        if !self.shows_all.swap(all, Relaxed) && all {
            self.show_all(interface, log);
        }
        !interface.is_off()
    }

    fn is_on(&self) -> bool {
        self.interface.get().is_some()
    }

    fn load(&self, log: &Log, code: &Code<'_>, entry: Option<LogEntry>) {
        let Some((interface, entry)) = self.interface.get().copied().zip(entry) else { return };
        let requested = log.control().load(Relaxed);
        if requested & control::BREAKPOINTS != 0 {
            log.count_change();
            let mut space = [0; BREAKPOINTS_ROOM];
            if has_breakpoint(log.breakpoints(&mut space), code) {
                return self.attempt(|| Self::show(interface.at_once(), entry, code));
            }
        }
        if requested & control::GDB != 0 {
            self.attempt(|| Self::show(interface, entry, code));
        }
    }

    fn moved(&self, log: &Log, from: LogEntry, to: Option<LogEntry>, _: u64) {
        self.unload(log, from);
        self.attempt(|| {
            if let Some(dump) = to.and_then(|to| log.dump_of(to.0, to.1)) {
                logged(&dump, |code| self.load(log, code, to));
            }
        });
    }

    fn unload(&self, log: &Log, entry: LogEntry) {
        if log.control().load(Relaxed) & control::BREAKPOINTS != 0 {
            log.count_change();
        }
        if let Some((interface, (address, _))) =
            self.interface.get().zip(log.place(entry.0, entry.1))
        {
            interface.unload(key(entry), address);
        }
    }

    fn forked(&self, log: &Log) {
        if let Some(interface) = self.interface.get()
            && interface.forked() == AfterFork::MustReload
            && self.shows_all.load(Relaxed)
        {
            self.show_all(interface, log);
        }
    }

    fn take_refusal(&self) -> bool {
        let is_refused = self.is_refused.load(Relaxed) && self.is_refused.swap(false, Relaxed);
        self.interface.get().is_some_and(publish_gdb::Gdb::take_refusal) || is_refused
    }
}

/// The key of a code in the interface.
fn key((position, index): LogEntry) -> u64 {
    u64::from(position.get()) << 32 | u64::from(index)
}
