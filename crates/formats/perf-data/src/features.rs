//! Feature sections: what a recording contains about the machine, the command and its files.

use std::collections::BTreeMap;

use crate::build_id::BuildId;
use crate::endian::{Cursor, Endian, until_nul};
use crate::error::Error;
use crate::header::{FileHeader, Section};
use crate::store::Store;

/// Numbers of the features (`HEADER_*` of perf) that this library uses.
pub mod feature {
    /// Tracepoint formats.
    pub const TRACING_DATA: u8 = 1;
    /// Build-ids of the files that contain samples.
    pub const BUILD_ID: u8 = 2;
    /// Name of the machine.
    pub const HOSTNAME: u8 = 3;
    /// The kernel's release, as `uname -r` prints it.
    pub const OSRELEASE: u8 = 4;
    /// The kind of machine, as `uname -m` prints it.
    pub const ARCH: u8 = 6;
    /// The recorder's command line.
    pub const CMDLINE: u8 = 11;
    /// Names of the events.
    pub const EVENT_DESC: u8 = 12;
    /// Samples contain branch stacks.
    pub const BRANCH_STACK: u8 = 15;
    /// Positions of the AUXTRACE events.
    pub const AUXTRACE: u8 = 18;
    /// The recording was made by `perf stat`.
    pub const STAT: u8 = 19;
    /// The machine's caches.
    pub const CACHE: u8 = 20;
    /// The clock's resolution.
    pub const CLOCKID: u8 = 23;
    /// The recording is a directory.
    pub const DIR_FORMAT: u8 = 24;
    /// What the kernel said of each BPF program.
    pub const BPF_PROG_INFO: u8 = 25;
    /// The types, names and texts that BPF programs refer to.
    pub const BPF_BTF: u8 = 26;
    /// One moment by the recording's clock and by the clock of the day.
    pub const CLOCK_DATA: u8 = 29;
    /// The events are compressed.
    pub const COMPRESSED: u8 = 27;
}

/// Maximum total size of the feature sections; what exceeds it is left out.
pub(crate) const FEATURES_MAX: u64 = 1 << 28;

/// What two clocks said when perf began to record ([`feature::CLOCK_DATA`]). perf notes it if the recording's clock was chosen with `-k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockData {
    /// The clock of the recording's times: an id of `clock_gettime`.
    pub clock_id: i32,
    /// The wall clock, in nanoseconds since 1970.
    pub wall_clock: u64,
    /// The recording's clock, in nanoseconds.
    pub time: u64,
}

/// A length, and so many bytes, of which those from the first NUL on are padding.
fn string<'a>(at: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let length = at.u32()?;
    at.bytes(length.into()).map(until_nul)
}

/// The feature sections, in memory: number → bytes as in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    map: BTreeMap<u8, Vec<u8>>,
}

impl Features {
    /// Reads the sections in the table behind the data. Sections outside the file are skipped, and a missing table
    /// yields no features: perf writes them last, so a cut-off recording lacks them.
    pub(crate) fn read(store: &Store, header: &FileHeader) -> Result<Self, Error> {
        let mut found = Self::default();
        let Some(table) = header.data.end() else { return Ok(found) };
        let length = u64::try_from(header.features.len()).unwrap_or_default().saturating_mul(16);
        if table.checked_add(length).is_none_or(|end| end > store.len()) {
            return Ok(found);
        }
        let table = store.section(table, length)?;
        let mut at = Cursor::new(&table, header.endian);
        let mut budget = FEATURES_MAX;
        for &number in &header.features {
            let Some(section) = Section::read(&mut at) else { break };
            let inside = section.end().is_some_and(|end| end <= store.len());
            if let (true, Some(left)) = (inside, budget.checked_sub(section.size)) {
                budget = left;
                found.map.insert(number, store.section(section.offset, section.size)?);
            }
        }
        Ok(found)
    }

    /// The bytes of a feature.
    pub fn get(&self, number: u8) -> Option<&[u8]> {
        self.map.get(&number).map(Vec::as_slice)
    }

    /// All features, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.map.iter().map(|(&number, bytes)| (number, bytes.as_slice()))
    }

    /// Adds or replaces a feature.
    pub fn set(&mut self, number: u8, bytes: Vec<u8>) {
        self.map.insert(number, bytes);
    }

    /// Removes a feature.
    pub fn remove(&mut self, number: u8) -> Option<Vec<u8>> {
        self.map.remove(&number)
    }

    /// The build-ids of files ([`feature::BUILD_ID`]).
    pub fn build_ids(&self, endian: Endian) -> Vec<BuildId> {
        BuildId::decode_all(self.get(feature::BUILD_ID).unwrap_or_default(), endian)
    }

    /// Appends build-ids to the existing ones.
    pub fn append_build_ids<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a BuildId>,
        endian: Endian,
    ) {
        let section = self.map.entry(feature::BUILD_ID).or_default();
        for id in ids {
            section.extend(id.encode(endian, 0));
        }
        if section.is_empty() {
            self.map.remove(&feature::BUILD_ID);
        }
    }

    /// The text of a feature that is one string: [`feature::HOSTNAME`], [`feature::OSRELEASE`] or [`feature::ARCH`].
    pub fn string(&self, number: u8, endian: Endian) -> Option<&[u8]> {
        string(&mut Cursor::new(self.get(number)?, endian))
    }

    /// The words of the recorder's command line ([`feature::CMDLINE`]), as far as they can be read.
    pub fn command_line(&self, endian: Endian) -> Vec<&[u8]> {
        let mut at = Cursor::new(self.get(feature::CMDLINE).unwrap_or_default(), endian);
        let count = at.u32().unwrap_or(0);
        (0..count).map_while(|_| string(&mut at)).collect()
    }

    /// What the clocks said when perf began to record ([`feature::CLOCK_DATA`]); `None` if that is not there, or has another version.
    pub fn clock_data(&self, endian: Endian) -> Option<ClockData> {
        let mut at = Cursor::new(self.get(feature::CLOCK_DATA)?, endian);
        let (version, clock_id) = at.pair()?;
        let (wall_clock, time) = (at.u64()?, at.u64()?);
        let clock_id = clock_id.cast_signed();
        (version == 1).then_some(ClockData { clock_id, wall_clock, time })
    }

    /// The events' names, in the order of the attributes ([`feature::EVENT_DESC`]).
    pub(crate) fn event_names(&self, endian: Endian) -> Vec<&[u8]> {
        let mut names = Vec::new();
        let mut at = Cursor::new(self.get(feature::EVENT_DESC).unwrap_or_default(), endian);
        let Some((count, attr_size)) = at.pair() else { return names };
        for _ in 0..count {
            let mut name = || {
                at.bytes(u64::from(attr_size))?;
                let ids = at.u32()?;
                let length = at.u32()?;
                let name = at.bytes(u64::from(length))?;
                at.bytes(u64::from(ids).checked_mul(8)?)?;
                Some(name)
            };
            let Some(name) = name() else { break };
            names.push(name);
        }
        names
    }
}
