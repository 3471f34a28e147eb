//! Reads perf maps and jitdumps. Of each code in a jitdump, only its position in the file is kept.

use std::collections::HashMap;
use std::hash::Hasher;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use code_image::Target;
use code_index::DumpEvents;
use code_timeline::{AddressSpaceId, HistoryBuilder};
use jitdump::{CodeLoad, CodePlace, DumpFile, Quirks};
use rustc_hash::FxHasher;

use super::search;
use crate::files::{Damage, SourceFile, as_jitdump, content, open_owned_by, report_end};
use crate::{Error, Result, text};

/// One code at one address. Code that moves counts as another code.
#[derive(Clone, Debug)]
pub struct Code {
    /// Address of its first byte.
    pub start: u64,
    /// Size in bytes; not 0, and it does not reach past the last address.
    pub size: u64,
    /// Where the file describes it.
    pub origin: Origin,
    /// A hash of its name.
    pub name: u64,
}

impl Code {
    /// The addresses.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.size)
    }

    /// Whether the other code has the same name and range.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.start, self.size, self.name) == (other.start, other.size, other.name)
    }
}

/// Where a code is described.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A line of a perf map.
    Map {
        /// The number of the map.
        file: u32,
        /// The position of the name in the map.
        name: Range<usize>,
    },
    /// A LOAD of a jitdump.
    Dump {
        /// The number of the dump.
        file: u32,
        /// The position in the dump.
        place: CodePlace,
    },
}

impl Origin {
    /// The number of the file.
    pub fn file(&self) -> u32 {
        match *self {
            Self::Map { file, .. } | Self::Dump { file, .. } => file,
        }
    }
}

/// The files, kept for further reads.
#[derive(Debug, Default)]
pub struct Files {
    maps: HashMap<u32, Vec<u8>>,
    dumps: HashMap<u32, Dump>,
}

#[derive(Debug)]
struct Dump {
    path: PathBuf,
    file: DumpFile<SourceFile>,
    quirks: Quirks,
}

impl Files {
    /// Reads a perf map and registers it as `number`. Its lines are appended to `codes` in file order.
    pub fn read_map(
        &mut self,
        found: &search::SourceFile,
        number: u32,
        codes: &mut Vec<Code>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let path = found.path.as_path();
        let content = open_owned_by(found.owner, path)
            .and_then(|file| content::text(&file, content::LARGEST_MAP))
            .map_err(Error::file(path))?;
        let bytes = content.bytes;
        if let Some(left_out) = content.left_out {
            warnings.push(format!("{}: {left_out}", text::path(path)));
        }
        let mut damage = Damage::default();
        let beginning = bytes.as_ptr().addr();
        for entry in perf_map::entries(&bytes) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    damage.note(&error);
                    continue;
                }
            };
            let size = entry.end() - entry.address;
            if size == 0 || size > content::LARGEST_CODE {
                continue;
            }
            let at = entry.name.as_ptr().addr() - beginning;
            codes.push(Code {
                start: entry.address,
                size,
                origin: Origin::Map { file: number, name: at..at + entry.name.len() },
                name: number_of(entry.name),
            });
        }
        damage.report(path, warnings);
        self.maps.insert(number, bytes);
        Ok(())
    }

    /// Reads a jitdump and registers it as `number`. Its codes are appended to `codes` in the order of
    /// their loads. Returns their target machine.
    pub fn read_dump(
        &mut self,
        found: &search::SourceFile,
        number: u32,
        codes: &mut Vec<Code>,
        warnings: &mut Vec<String>,
    ) -> Result<Target> {
        let path = found.path.as_path();
        let file = open_owned_by(found.owner, path).and_then(|file| as_jitdump(file, 0));
        let file = file.map_err(Error::file(path))?;
        let size = file.metadata().map_err(Error::file(path))?.len();
        let mut file = DumpFile::open(file, size).map_err(unreadable(path))?;
        let quirks = file.quirks().map_err(Error::file(path))?;
        let machine = u16::try_from(quirks.machine).unwrap_or(0);
        let target = Target::new(machine, file.header().endian);

        let mut history = HistoryBuilder::new();
        let mut events = DumpEvents::new(&mut history);
        let mut damage = Damage::default();
        let outcome = file.for_each_code(quirks, |event| {
            match event {
                Ok(event) => {
                    events.take(event, |load| {
                        let place = load.place();
                        (Origin::Dump { file: number, place }, number_of(load.name))
                    });
                }
                Err(error) => damage.note(&error),
            }
            ControlFlow::Continue(())
        });
        events.finish();
        damage.report(path, warnings);
        report_end(path, history.len(), outcome, warnings);
        if history.is_empty() {
            warnings.push(format!("{}: contains no code", text::path(path)));
        }
        // Addresses in valgrind's output have no timestamps, so moved code is also kept at its earlier addresses.
        codes.extend(history.into_arrivals(AddressSpaceId::ONLY).into_iter().map(|placed| {
            let Range { start, end } = placed.range();
            let (origin, name) = placed.origin;
            Code { start, size: end - start, origin, name }
        }));
        self.dumps.insert(number, Dump { path: path.to_owned(), file, quirks });
        Ok(target)
    }

    /// The bytes of a perf map in this range.
    pub fn map_bytes(&self, number: u32, range: Range<usize>) -> &[u8] {
        self.maps.get(&number).and_then(|bytes| bytes.get(range)).unwrap_or_default()
    }

    /// The record of a code of this size in a dump.
    pub fn load(
        &mut self,
        number: u32,
        place: &CodePlace,
        size: u64,
    ) -> Result<Option<CodeLoad<'_>>> {
        let Some(Dump { path, file, quirks }) = self.dumps.get_mut(&number) else {
            return Ok(None);
        };
        let load = file.code_at(place, quirks).map_err(Error::file(path))?;
        // The file may have changed since.
        Ok(load.filter(|load| load.size >= size))
    }
}

/// The hash of a name.
pub fn number_of(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

/// For `map_err`: a dump that cannot be opened.
fn unreadable(path: &Path) -> impl FnOnce(jitdump::OpenError) -> Error {
    let path = path.to_owned();
    move |error| match error {
        jitdump::OpenError::Read(source) => Error::File { path, source },
        jitdump::OpenError::Format(error) => Error::Format { path, cause: error.to_string() },
    }
}
