//! Windows' profilers, which read events (ETW).

use std::sync::OnceLock;

use publish_etw::Options;

use super::Publisher;
use crate::host::Host;
use crate::image::logged;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// Publishes while something records.
#[derive(Debug)]
pub(super) struct Etw(OnceLock<publish_etw::Etw>);

impl Etw {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn recorded(&self) -> Option<&publish_etw::Etw> {
        self.0.get().filter(|etw| etw.is_enabled())
    }
}

impl Publisher for Etw {
    fn subject(&self) -> Subject {
        Subject::Etw
    }

    fn prepare(&self, host: &'static Host) {
        let Some(log) = host.log.as_ref().filter(|_| host.settings.etw) else { return };
        // A recording begins: on a thread of the system.
        let options = Options::new().when_enabled(move |etw| {
            let _signals = guest::hold_signals();
            let reported = fallible::attempt(|| {
                for (position, index, _) in log.positions() {
                    if let Some(dump) = log.dump_of(position, index) {
                        logged(&dump, |code| etw.load(code));
                    }
                }
            });
            if let Err(fallible::Refused) = reported {
                etw.give_up();
            }
        });
        match publish_etw::Etw::create(options) {
            Ok(etw) => drop(self.0.set(etw)),
            Err(error) => host.report(Subject::Etw, error),
        }
    }

    /// A recording may begin at any time: then this is asked for each code, which costs one load of a flag.
    fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    fn load(&self, _: &Log, code: &Code<'_>, _: Option<LogEntry>) {
        if let Some(etw) = self.recorded() {
            etw.load(code);
        }
    }

    fn moved(&self, log: &Log, from: LogEntry, _: Option<LogEntry>, address: u64) {
        let Some(etw) = self.recorded() else { return };
        // The old entry has everything even if there is no space for a new one.
        let reported = fallible::attempt(|| {
            if let Some(dump) = log.dump_of(from.0, from.1) {
                logged(&dump, |code| etw.load(&code.runs_at(address)));
            }
        });
        if let Err(fallible::Refused) = reported {
            etw.give_up();
        }
    }

    /// There is no event for it.
    fn unload(&self, _: &Log, _: LogEntry) {}

    fn forked(&self, _: &Log) {}

    fn take_refusal(&self) -> bool {
        self.0.get().is_some_and(publish_etw::Etw::take_refusal)
    }
}
