//! The memory with samples that no source describes, for a message that says what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use code_timeline::AddressSpaceId;

use super::report::{UnnamedMemory, UnnamedProcess};
use crate::attribution::UnnamedSample;
use crate::codes::unusable::UnusableFile;
use crate::files::looks_like_marker;
use crate::limits::GENERATIONS;
use crate::recording::Recording;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;

/// Number of processes in the report.
const PROCESSES: usize = 16;
/// Number of mappings of each process in the report.
const MAPPINGS: usize = 4;
/// Number of files of each process that cannot be used.
const UNUSABLE: usize = 8;
/// Number of mapped files of a process that are listed.
const FILES: usize = 4096;

/// The processes with these samples, most samples first.
pub(crate) fn processes(
    samples: &[UnnamedSample],
    index: &RecordingIndex,
    spaces: &AddressSpaces,
    unusable: &[UnusableFile],
) -> Vec<UnnamedProcess> {
    let mut found: BTreeMap<AddressSpaceId, BTreeMap<(u64, u64), UnnamedMemory>> = BTreeMap::new();
    for sample in samples {
        let map = spaces.mapping(index, sample.space, sample.address, sample.time);
        let map = map.and_then(|map| index.maps.get(map));
        let range = map.map_or(sample.address..sample.address, |map| map.range.clone());
        // A change of its protection is another mapping event of the same memory.
        let of_space = found.entry(sample.space).or_default();
        let memory = of_space.entry((range.start, range.end)).or_insert_with(|| {
            let name = map.map_or(&b""[..], |map| index.name(map));
            UnnamedMemory {
                name: String::from_utf8_lossy(name).into_owned(),
                start: range.start,
                end: range.end,
                first: sample.address,
                last: sample.address,
                samples: 0,
            }
        });
        memory.samples += 1;
        memory.first = memory.first.min(sample.address);
        memory.last = memory.last.max(sample.address);
    }
    let mut processes: Vec<UnnamedProcess> = found
        .into_iter()
        .map(|(space, memory)| {
            let pid = index.processes.pid(space);
            let mut memory: Vec<UnnamedMemory> = memory.into_values().collect();
            memory.sort_by_key(|memory| (std::cmp::Reverse(memory.samples), memory.start));
            UnnamedProcess {
                pid,
                comm: index.comm(pid),
                samples: memory.iter().map(|memory| memory.samples).sum(),
                mappings: memory.len(),
                memory: memory.into_iter().take(MAPPINGS).collect(),
                unusable: of_process(unusable, pid).take(UNUSABLE).cloned().collect(),
                files: mapped_files(index, space),
            }
        })
        .collect();
    processes.sort_by_key(|process| (std::cmp::Reverse(process.samples), process.pid));
    processes.truncate(PROCESSES);
    processes
}

fn of_process(files: &[UnusableFile], pid: u32) -> impl Iterator<Item = &UnusableFile> {
    files.iter().filter(move |file| file.pid == pid)
}

/// The files that a process has mapped, and those that it was forked with.
fn mapped_files(index: &RecordingIndex, space: AddressSpaceId) -> Vec<PathBuf> {
    let mut names = BTreeSet::new();
    let mut files = Vec::new();
    let mut space = Some(space);
    for _ in 0..GENERATIONS {
        let Some(of) = space else { break };
        for map in index.maps_of(of).filter(|map| !map.anonymous) {
            let path = index.name(map);
            // A dump says nothing of the program.
            let is_file = path.starts_with(b"/") && !looks_like_marker(path);
            if is_file && files.len() < FILES && names.insert(map.name.index()) {
                files.push(PathBuf::from(OsStr::from_bytes(path)));
            }
        }
        space = index.processes.parent(of).map(|(parent, _)| parent);
    }
    files
}

impl Recording {
    /// The files that process `pid` mapped, up to 4096: in its last program, and in the processes that it was forked from.
    #[must_use]
    pub fn mapped_files(&self, pid: u32) -> Vec<PathBuf> {
        let space = self.index.processes.at(pid, u64::MAX);
        space.map_or_else(Vec::new, |space| mapped_files(&self.index, space))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::recording_index::MapEvent;

    #[test]
    fn samples_are_counted_by_mapping() {
        let anonymous = |range, ordinal| MapEvent::made(0, range, 0, ordinal, true);
        let mut index =
            RecordingIndex::made(vec![anonymous(0x1000..0x3000, 0), anonymous(0x8000..0x9000, 1)]);
        index.names.intern(b"//anon");
        let spaces = AddressSpaces::build(&index);
        let space = index.processes.at(1, 0).expect("an address space");
        let addresses = [0x8010, 0x1010, 0x2ff0, 0x1020, 0x5000];
        let samples = addresses.map(|address| UnnamedSample { space, address, time: 1 });
        let found = processes(&samples, &index, &spaces, &[]);
        assert_eq!((found.len(), found[0].pid, found[0].samples), (1, 1, 5));
        let memory = found[0].memory.iter();
        let memory: Vec<_> = memory.map(|of| (of.start, of.end, of.first, of.last)).collect();
        // At the last address nothing is mapped.
        let expected = [
            (0x1000, 0x3000, 0x1010, 0x2ff0),
            (0x5000, 0x5000, 0x5000, 0x5000),
            (0x8000, 0x9000, 0x8010, 0x8010),
        ];
        assert_eq!(memory, expected);
        assert_eq!(found[0].mappings, 3);
    }
}
