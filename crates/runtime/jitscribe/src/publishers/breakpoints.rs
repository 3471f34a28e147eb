//! Debuggers that read the log themselves, at each stop: they are told when to read it in between, because a breakpoint of theirs
//! has to be placed, or is about to be overwritten.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fallible::Refused;
use jitdump::extension::control;
use publish_gdb::LogLocator;

use super::Publisher;
use crate::host::Host;
use crate::image::{logged, target};
use crate::log::{BREAKPOINTS_ROOM, Log, LogEntry, has_breakpoint};
use crate::notice::Subject;
use jit_code::Code;

/// The locator of the log, which is registered again each time.
#[derive(Debug)]
pub(super) struct Breakpoints {
    locator: OnceLock<&'static LogLocator>,
    is_on: AtomicBool,
}

impl Breakpoints {
    pub(super) const fn new() -> Self {
        Self { locator: OnceLock::new(), is_on: AtomicBool::new(false) }
    }

    /// Makes the debugger read the log.
    fn call(&self) {
        if let Some(locator) = self.locator.get() {
            locator.register_again();
        }
    }

    fn is_requested(log: &Log) -> bool {
        log.control().load(Relaxed) & control::BREAKPOINTS != 0
    }
}

impl Publisher for Breakpoints {
    fn subject(&self) -> Subject {
        Subject::Debuggers
    }

    fn request_bit(&self) -> u32 {
        control::BREAKPOINTS
    }

    /// Registers the address of the log, whether or not it is requested: this is where debuggers find it.
    fn prepare(&self, host: &'static Host) {
        let Some(log) = &host.log else { return };
        let (address, size) = log.mapped();
        match LogLocator::register(target(), address, size) {
            Ok(locator) => drop(self.locator.set(locator)),
            Err(Refused) => host.report_out_of_memory(Subject::Debuggers),
        }
    }

    fn start(&self, _: &'static Host, _: &Log) -> bool {
        let has_locator = self.locator.get().is_some();
        self.is_on.store(has_locator, Relaxed);
        has_locator
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    fn load(&self, log: &Log, code: &Code<'_>, entry: Option<LogEntry>) {
        if entry.is_some() {
            log.count_change();
            if has_breakpoint(log.breakpoints(&mut [0; BREAKPOINTS_ROOM]), code) {
                self.call();
            }
        }
    }

    fn moved(&self, log: &Log, from: LogEntry, to: Option<LogEntry>, _: u64) {
        self.unload(log, from);
        let dump = to.and_then(|to| fallible::attempt(|| log.dump_of(to.0, to.1)).ok()?);
        if let Some(dump) = dump.filter(|_| Self::is_requested(log)) {
            logged(&dump, |code| self.load(log, code, to));
        }
    }

    fn unload(&self, log: &Log, _: LogEntry) {
        if Self::is_requested(log) {
            log.count_change();
        }
    }

    /// If there is a breakpoint in it: the debugger removes that when it finds the code gone.
    fn awaits_end(&self, log: &Log, (position, index): LogEntry) -> bool {
        Self::is_requested(log)
            && log.place(position, index).is_some_and(|(start, size)| {
                publish_gdb::has_breakpoint(start..start.saturating_add(size))
            })
    }

    fn ended(&self) {
        self.call();
    }

    fn forked(&self, _: &Log) {}
}
