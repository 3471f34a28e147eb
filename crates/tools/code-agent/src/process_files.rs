//! The perf maps and jitdumps of one process.

use crate::file::{FileReading, KnownFile};
use crate::file_codes::Space;
use crate::followed_file::FollowedFile;
use crate::protocol::{Resolved, SourceInfo, Unknown};
use crate::request_budget::RequestBudget;

/// The most files of a process: a map, and a few dumps.
const MOST: usize = 8;

/// The files, those with times and lines first.
#[derive(Debug, Default)]
pub(crate) struct ProcessFiles(Vec<FollowedFile>);

impl ProcessFiles {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn codes(&self) -> u64 {
        self.0.iter().map(FollowedFile::codes).sum()
    }

    pub(crate) fn memory(&self) -> u64 {
        self.0.iter().map(FollowedFile::memory).sum()
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.0.iter().map(FollowedFile::left_out).sum()
    }

    /// What the next reading needs to know.
    pub(crate) fn known(&self) -> Vec<KnownFile> {
        self.0.iter().map(FollowedFile::known).collect()
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = SourceInfo> {
        let info = |file: &FollowedFile| SourceInfo {
            kind: file.kind.name().to_owned(),
            codes: file.codes(),
        };
        self.0.iter().map(info)
    }

    /// Takes what was read. `is_all` is whether these are all files that the process has now: others are forgotten. `space` is for
    /// all of them together. Returns whether there is more to read: what was read led on, and the file has more.
    pub(crate) fn take(
        &mut self,
        readings: &[FileReading],
        is_all: bool,
        space: Space,
        now: u64,
    ) -> bool {
        let mut has_more = false;
        if is_all {
            self.0.retain(|file| readings.iter().any(|reading| is_of(file, reading)));
        }
        for reading in readings {
            let Some(part) = &reading.part else { continue };
            let known = self.0.iter().position(|file| is_of(file, reading));
            let at = match known {
                Some(at) => at,
                None if self.0.len() < MOST => {
                    let path = reading.path.clone();
                    let file = FollowedFile::new(reading.kind, path, part.status);
                    let at = self.0.partition_point(|other| other.kind <= reading.kind);
                    self.0.insert(at, file);
                    at
                }
                None => continue,
            };
            let (codes, bytes) = (self.codes(), self.memory());
            let Some(file) = self.0.get_mut(at) else { continue };
            let own = Space {
                bytes: space.bytes.saturating_sub(bytes.saturating_sub(file.memory())),
                codes: space.codes.saturating_sub(codes.saturating_sub(file.codes())),
                ..space
            };
            has_more |= file.take(part, own, now) && part.is_cut();
        }
        has_more
    }

    /// What is at addresses, which are sorted, each with a time.
    pub(crate) fn resolve(
        &self,
        sorted: &[(u64, u64)],
        budget: &mut RequestBudget,
    ) -> Vec<Resolved> {
        let mut resolved = vec![Resolved::Unknown(Unknown::Code); sorted.len()];
        for file in &self.0 {
            file.resolve(sorted, &mut resolved, budget);
        }
        resolved
    }
}

fn is_of(file: &FollowedFile, reading: &FileReading) -> bool {
    file.kind == reading.kind && file.path == reading.path
}
