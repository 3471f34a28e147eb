//! The Valgrind that runs the process: it reads an object file for each piece of code.

use std::sync::OnceLock;

use fallible::Refused;
use publish_valgrind::Options;

use super::Publisher;
use crate::host::Host;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// Publishes from the start, if the settings have a folder for the object files.
#[derive(Debug)]
pub(super) struct Valgrind(OnceLock<&'static publish_valgrind::Valgrind>);

impl Valgrind {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn begin(&self, valgrind: &'static publish_valgrind::Valgrind) {
        let _ = self.0.set(valgrind);
        // Without memory for this, code that the runtime frees at its end has no lines.
        let _ = guest::at_exit(move || valgrind.restore());
    }
}

impl Publisher for Valgrind {
    fn subject(&self) -> Subject {
        Subject::Valgrind
    }

    fn prepare(&self, host: &'static Host) {
        let Some(directory) = &host.settings.valgrind else { return };
        let report = |why: &str| host.report_valgrind(why);
        let options = Options::new(directory.as_path()).reporter(report);
        match publish_valgrind::Valgrind::create(options) {
            Ok(valgrind) => match fallible::boxed(valgrind) {
                Ok(valgrind) => self.begin(Box::leak(valgrind)),
                Err(Refused) => host.report_out_of_memory(Subject::Valgrind),
            },
            Err(error) => host.report_valgrind(error),
        }
    }

    fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    fn load(&self, _: &Log, code: &Code<'_>, _: Option<LogEntry>) {
        if let Some(valgrind) = self.0.get() {
            valgrind.load(code);
        }
    }

    fn moved(&self, log: &Log, from: LogEntry, _: Option<LogEntry>, address: u64) {
        if let Some((valgrind, (from, size))) = self.0.get().zip(log.place(from.0, from.1)) {
            valgrind.moved(from, address, size);
        }
    }

    fn unload(&self, log: &Log, entry: LogEntry) {
        if let Some((valgrind, (address, size))) = self.0.get().zip(log.place(entry.0, entry.1)) {
            valgrind.unload(address, size);
        }
    }

    fn forked(&self, _: &Log) {
        if let Some(valgrind) = self.0.get() {
            valgrind.forked();
        }
    }
}
