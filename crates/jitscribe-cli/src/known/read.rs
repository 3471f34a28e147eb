//! Reads perf maps and jitdumps, of which no more is kept than where to read each code again.

use std::collections::HashMap;
use std::fs::File;
use std::hash::Hasher;
use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use code_image::Target;
use dumped_code::endian;
use jitdump::{CodeEvent, CodeLoad, CodePlace, DumpFile, Quirks};
use rustc_hash::FxHasher;

use crate::files::{Damage, open_regular, tell_end};
use crate::{Error, Result};

/// One code at one address: code that moves is another.
#[derive(Clone, Debug)]
pub struct Code {
    /// Address of its first byte.
    pub start: u64,
    /// Size in bytes; not 0, and it does not reach past the last address.
    pub size: u64,
    /// Where it is told of.
    pub origin: Origin,
    /// A number for its name. Others have it rarely.
    pub name: u64,
}

impl Code {
    /// The addresses.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.size)
    }

    /// Whether it is another under the same name in the same place.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.start, self.size, self.name) == (other.start, other.size, other.name)
    }
}

/// Where a code is told of.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A line of a perf map.
    Map {
        /// Which map.
        file: u32,
        /// Where in it the name stands.
        name: Range<usize>,
    },
    /// A LOAD of a jitdump.
    Dump {
        /// Which dump.
        file: u32,
        /// Where in it.
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

/// A line of a perf map that claims more bytes than this is not believed. (A jitdump holds the
/// bytes.)
const LARGEST: u64 = 1 << 28;

/// The files that are read from again.
#[derive(Debug, Default)]
pub struct Files {
    maps: HashMap<u32, Vec<u8>>,
    dumps: HashMap<u32, Dump>,
}

#[derive(Debug)]
struct Dump {
    path: PathBuf,
    file: DumpFile<File>,
    quirks: Quirks,
}

impl Files {
    /// Reads a perf map, to be known as `number`; its lines go to `codes` in their order.
    pub fn read_map(
        &mut self,
        path: &Path,
        number: u32,
        codes: &mut Vec<Code>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        open_regular(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(Error::file(path))?;
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
            if size == 0 || size > LARGEST {
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
        damage.tell(path, warnings);
        self.maps.insert(number, bytes);
        Ok(())
    }

    /// Reads a jitdump, to be known as `number`; its codes go to `codes` in the order in which they
    /// came to be. Returns for which machine they are.
    pub fn read_dump(
        &mut self,
        path: &Path,
        number: u32,
        codes: &mut Vec<Code>,
        warnings: &mut Vec<String>,
    ) -> Result<Target> {
        let file = open_regular(path).map_err(Error::file(path))?;
        let size = file.metadata().map_err(Error::file(path))?.len();
        let mut file = DumpFile::open(file, size).map_err(super::unreadable(path))?;
        let quirks = file.quirks().map_err(Error::file(path))?;
        let machine = u16::try_from(quirks.machine).unwrap_or(0);
        let target = Target::new(machine, endian(file.header().endian));

        let mut told: Vec<(u64, Code)> = Vec::new();
        // Where each code is now, by the number that a MOVE names it by. Few dumps have a MOVE, so
        // this is filled when the first one comes.
        let mut indices: Vec<u64> = Vec::new();
        let mut indexed = 0;
        let mut now: HashMap<(u32, u64), usize> = HashMap::new();
        let mut owners: Vec<u32> = Vec::new();
        let mut damage = Damage::default();
        let outcome = file.for_each_code(quirks, |event| {
            match event {
                Ok(CodeEvent::Load(load)) if load.size > 0 => {
                    let code = Code {
                        start: load.address,
                        size: load.end() - load.address,
                        origin: Origin::Dump { file: number, place: load.place() },
                        name: number_of(load.name),
                    };
                    told.push((load.timestamp, code));
                    indices.push(load.index);
                    owners.push(load.pid);
                }
                Ok(CodeEvent::Move(to)) => {
                    for at in indexed..indices.len() {
                        now.insert((owners[at], indices[at]), at);
                    }
                    indexed = indices.len();
                    // A MOVE of code that was never told of says nothing that could be shown.
                    if let Some(&old) = now.get(&(to.pid, to.index)) {
                        let code = Code { start: to.new_address, ..told[old].1.clone() };
                        let size = code.range().end - code.start;
                        told.push((to.timestamp, Code { size, ..code }));
                        indices.push(to.index);
                        owners.push(to.pid);
                    }
                }
                Ok(_) => {}
                Err(error) => damage.note(&error),
            }
            ControlFlow::Continue(())
        });
        damage.tell(path, warnings);
        tell_end(path, told.len(), outcome, warnings);
        if told.is_empty() {
            warnings.push(format!("{}: it tells of no code", path.display()));
        }
        // Stable: of equal times the later record is the later code.
        told.sort_by_key(|&(time, _)| time);
        codes.extend(told.into_iter().map(|(_, code)| code));
        self.dumps.insert(number, Dump { path: path.to_owned(), file, quirks });
        Ok(target)
    }

    /// The bytes of a perf map in this range.
    pub fn map_bytes(&self, number: u32, range: Range<usize>) -> &[u8] {
        self.maps.get(&number).and_then(|bytes| bytes.get(range)).unwrap_or_default()
    }

    /// What a dump says of a code of this size.
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
        // The file may be another by now.
        Ok(load.filter(|load| load.size >= size))
    }
}

fn number_of(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}
