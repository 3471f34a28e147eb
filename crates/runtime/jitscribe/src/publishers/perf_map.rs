//! The perf map `perf-PID.map`: written when it is requested, and kept up to date from then on.

use std::sync::OnceLock;

use fallible::Refused;
use jitdump::extension::control;
use publish_perf_map::Options;

use super::Publisher;
use crate::host::Host;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// The map; created by the first request.
#[derive(Debug)]
pub(super) struct PerfMap(OnceLock<publish_perf_map::PerfMap>);

impl PerfMap {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn open(&self, host: &'static Host) {
        let report = |why: &str| {
            host.withdraw(control::PERF_MAP);
            host.report(Subject::PerfMap, why);
        };
        let mut options = Options::new().reporter(report);
        if let Some(dir) = &host.settings.perf_map_dir {
            options = options.directory(dir.as_path());
        }
        match publish_perf_map::PerfMap::create(options) {
            Ok(map) => drop(self.0.set(map)),
            Err(error) => host.report(Subject::PerfMap, error),
        }
    }
}

impl Publisher for PerfMap {
    fn subject(&self) -> Subject {
        Subject::PerfMap
    }

    fn request_bit(&self) -> u32 {
        control::PERF_MAP
    }

    fn start(&self, host: &'static Host, log: &Log) -> bool {
        if !host.settings.perf_map {
            return false;
        }
        if self.0.get().is_none() {
            self.open(host);
        }
        if let Some(map) = self.0.get() {
            match fallible::attempt(|| log.alive()) {
                Ok(alive) => map.load_many(alive),
                Err(Refused) => {
                    map.close();
                    host.report_out_of_memory(Subject::PerfMap);
                    return false;
                }
            }
        }
        self.is_on()
    }

    fn is_on(&self) -> bool {
        self.0.get().is_some_and(|map| !map.is_off())
    }

    /// Its lock is given up in both cases.
    fn must_hold_signals(&self) -> bool {
        false
    }

    fn load(&self, _: &Log, code: &Code<'_>, _: Option<LogEntry>) {
        if let Some(map) = self.0.get() {
            map.load(code.address, code.size, code.name);
        }
    }

    fn moved(&self, log: &Log, from: LogEntry, _: Option<LogEntry>, address: u64) {
        if let Some((map, (from, size))) = self.0.get().zip(log.place(from.0, from.1)) {
            map.moved(from, address, size);
        }
    }

    fn unload(&self, log: &Log, entry: LogEntry) {
        if let Some((map, (address, size))) = self.0.get().zip(log.place(entry.0, entry.1)) {
            map.unload(address, size);
        }
    }

    fn forked(&self, _: &Log) {
        if let Some(map) = self.0.get() {
            map.forked();
        }
    }
}
