//! The files of processes in the table: what is kept of them, within the limits.

use code_log::Source;

use crate::file::{FileReading, KnownFile};
use crate::file_codes::Space;
use crate::processes::{ProcessFacts, ProcessKey, Processes};

impl<S: Source> Processes<S> {
    /// Whether files of a process are read: not if it has a code log with code, which has the same and more.
    #[must_use]
    pub fn wants_files(&self, key: ProcessKey) -> bool {
        self.processes.get(&key).is_none_or(|process| !process.has_logged_code())
    }

    /// The files of a process that were read before, for the next reading.
    #[must_use]
    pub fn known_files(&self, key: ProcessKey) -> Vec<KnownFile> {
        self.processes.get(&key).map(|process| process.files.known()).unwrap_or_default()
    }

    /// Takes what was read of the files of a process. `is_all` is whether all of its files were looked for: those that are not among
    /// the readings are forgotten.
    ///
    /// Returns whether there is more to read now.
    pub fn files_read(
        &mut self,
        key: ProcessKey,
        facts: ProcessFacts,
        readings: &[FileReading],
        is_all: bool,
        now: u64,
    ) -> bool {
        if !self.wants_files(key) {
            self.forget_files(key);
            return false;
        }
        let parts = || readings.iter().filter_map(|reading| reading.part.as_ref());
        let is_known = self.processes.contains_key(&key);
        if !is_known && parts().next().is_none() {
            return false;
        }
        let space = self.space_for_files(key, facts.owner);
        if !is_known && (space.bytes == 0 || self.processes.len() >= self.limits.processes) {
            self.left_out += 1;
            return false;
        }
        let process = self.entry(key, facts);
        let before = process.files.codes();
        let has_more = process.files.take(readings, is_all, space, now);
        let after = process.files.codes();
        self.counts.updates += readings.len() as u64;
        self.counts.bytes_read += parts().map(|part| part.bytes.len() as u64).sum::<u64>();
        self.counts.codes_added += after.saturating_sub(before);
        self.codes = self.codes.saturating_sub(before).saturating_add(after);
        has_more
    }

    /// Notes that a process has no files any more: it runs another program, or has a code log.
    pub fn forget_files(&mut self, key: ProcessKey) {
        if let Some(process) = self.processes.get_mut(&key) {
            self.codes = self.codes.saturating_sub(process.files.codes());
            process.files = Default::default();
            if process.logs.is_empty() && process.ended.is_none() {
                self.processes.remove(&key);
            }
        }
    }

    /// How much the files of a process may take. A user other than root gets a quarter of all.
    fn space_for_files(&self, key: ProcessKey, user: u32) -> Space {
        let limits = &self.limits;
        let (mut all, mut of_user, mut processes_of_user) = (0_u64, 0_u64, 0);
        for (_, other) in self.processes.iter().filter(|(other, _)| **other != key) {
            let memory = other.files.memory();
            all = all.saturating_add(memory);
            if other.facts.owner == user && !other.files.is_empty() {
                of_user = of_user.saturating_add(memory);
                processes_of_user += 1;
            }
        }
        let mut share = limits.file_bytes;
        let mut processes = limits.processes;
        if user != 0 {
            (share, processes) = (share / 4, processes / 4);
        }
        let mut bytes = limits.file_bytes.saturating_sub(all).min(share.saturating_sub(of_user));
        if processes_of_user >= processes {
            bytes = 0;
        }
        let own = self.processes.get(&key).map_or(0, |process| process.files.codes());
        let codes = limits.codes.saturating_sub(self.codes.saturating_sub(own));
        Space {
            bytes: bytes.min(limits.file_bytes_of_process),
            codes: codes.min(limits.codes_of_process),
            text: limits.bytes_of_code,
        }
    }
}
