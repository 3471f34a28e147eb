//! VTune, or another tool that has a collector for Intel's JIT Profiling API.

use std::sync::OnceLock;

use publish_vtune::Options;

use super::Publisher;
use crate::host::Host;
use crate::image::logged;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// Publishes from the start, if the environment names a collector that is running.
#[derive(Debug)]
pub(super) struct Vtune(OnceLock<publish_vtune::Vtune>);

impl Vtune {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
}

impl Publisher for Vtune {
    fn subject(&self) -> Subject {
        Subject::Vtune
    }

    fn prepare(&self, host: &'static Host) {
        let settings = &host.settings;
        if !settings.vtune {
            return;
        }
        let mut options = Options::new().reporter(|why: &str| host.report(Subject::Vtune, why));
        if let Some(module) = &settings.vtune_module {
            options = options.module(module);
        }
        match publish_vtune::Vtune::create(options) {
            Ok(vtune) => drop(self.0.set(vtune)),
            // It was not requested, and nothing records.
            Err(error) if error.is_absence() && !settings.vtune_is_requested => {}
            Err(error) => host.report(Subject::Vtune, error),
        }
    }

    fn is_on(&self) -> bool {
        self.0.get().is_some_and(|vtune| !vtune.is_off())
    }

    fn load(&self, _: &Log, code: &Code<'_>, _: Option<LogEntry>) {
        if let Some(vtune) = self.0.get() {
            vtune.load(code);
        }
    }

    fn moved(&self, log: &Log, from: LogEntry, _: Option<LogEntry>, address: u64) {
        let Some((vtune, (old, size))) = self.0.get().zip(log.place(from.0, from.1)) else {
            return;
        };
        // The tool gets everything about the code again. The old entry has it even if there is no space for a new one.
        let is_logged = fallible::attempt(|| {
            let mut is_logged = false;
            if let Some(dump) = log.dump_of(from.0, from.1) {
                logged(&dump, |code| {
                    is_logged = true;
                    vtune.moved(old, &code.runs_at(address));
                });
            }
            is_logged
        });
        match is_logged {
            Ok(true) => {}
            Ok(false) => vtune.unload(old, size),
            Err(fallible::Refused) => vtune.give_up(),
        }
    }

    fn unload(&self, log: &Log, entry: LogEntry) {
        if let Some((vtune, (address, size))) = self.0.get().zip(log.place(entry.0, entry.1)) {
            vtune.unload(address, size);
        }
    }

    fn forked(&self, _: &Log) {
        if let Some(vtune) = self.0.get() {
            vtune.forked();
        }
    }
}
