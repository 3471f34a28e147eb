//! The Valgrind that runs the process: it reads an object file for each piece of code.

use std::sync::OnceLock;

use publish_valgrind::Options;

use super::Publisher;
use crate::host::Host;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// Publishes from the start, if the settings have a folder for the object files.
#[derive(Debug)]
pub(super) struct Valgrind(OnceLock<publish_valgrind::Valgrind>);

impl Valgrind {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
}

impl Publisher for Valgrind {
    fn subject(&self) -> Subject {
        Subject::Valgrind
    }

    fn prepare(&self, host: &'static Host) {
        let Some(directory) = &host.settings.valgrind else { return };
        let report = |why: &str| host.report(Subject::Valgrind, why);
        let options = Options::new(directory.as_path()).reporter(report);
        match publish_valgrind::Valgrind::create(options) {
            Ok(valgrind) => drop(self.0.set(valgrind)),
            Err(error) => host.report(Subject::Valgrind, error),
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
