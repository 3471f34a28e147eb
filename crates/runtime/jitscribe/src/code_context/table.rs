//! The logs of this process.

use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use process_context::CodeLog;

/// The most logs in a context. Those of further scribes are found by the names of their mappings.
pub(crate) const MOST_LOGS: usize = 16;

/// The logs of this process. Callers hold the lock of the context.
#[derive(Debug)]
pub(super) struct Table {
    count: AtomicUsize,
    rows: [Row; MOST_LOGS],
}

#[derive(Debug)]
struct Row {
    address: AtomicU64,
    size: AtomicU64,
    version: AtomicU32,
}

impl Row {
    const fn new() -> Self {
        Self { address: AtomicU64::new(0), size: AtomicU64::new(0), version: AtomicU32::new(0) }
    }
}

impl Table {
    pub(super) const fn new() -> Self {
        Self { count: AtomicUsize::new(0), rows: [const { Row::new() }; MOST_LOGS] }
    }

    /// Adds a log, or replaces the one at its address. False if there is no space.
    pub(super) fn add(&self, log: CodeLog) -> bool {
        let count = self.count.load(Relaxed);
        let is_there = |row: &&Row| row.address.load(Relaxed) == log.address;
        let known = self.rows.iter().take(count).find(is_there);
        let Some(row) = known.or_else(|| self.rows.get(count)) else { return false };
        row.address.store(log.address, Relaxed);
        row.size.store(log.size, Relaxed);
        row.version.store(log.version, Relaxed);
        if known.is_none() {
            self.count.store(count + 1, Release);
        }
        true
    }

    #[cfg(target_os = "linux")]
    pub(super) fn clear(&self) {
        self.count.store(0, Relaxed);
    }

    /// Copies them, and returns how many there are.
    pub(super) fn copy(&self, logs: &mut [CodeLog; MOST_LOGS]) -> usize {
        let count = self.count.load(Acquire).min(MOST_LOGS);
        for (log, row) in logs.iter_mut().zip(&self.rows).take(count) {
            *log = CodeLog {
                address: row.address.load(Relaxed),
                size: row.size.load(Relaxed),
                version: row.version.load(Relaxed),
            };
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::{CodeLog, MOST_LOGS, Table};

    #[test]
    fn each_log_is_there_once() {
        let table = Table::new();
        let log = |address: u64| CodeLog { address, size: address * 2, version: 1 };
        for address in 0..MOST_LOGS as u64 {
            assert!(table.add(log(address)) && table.add(log(address)));
        }
        assert!(!table.add(log(99)) && table.add(CodeLog { size: 7, ..log(3) }));
        let mut logs = [CodeLog::default(); MOST_LOGS];
        assert_eq!(table.copy(&mut logs), MOST_LOGS);
        for (address, found) in (0..).zip(logs) {
            let size = if address == 3 { 7 } else { address * 2 };
            assert_eq!(found, CodeLog { size, ..log(address) });
        }
        #[cfg(target_os = "linux")]
        {
            table.clear();
            assert_eq!(table.copy(&mut logs), 0);
        }
    }
}
