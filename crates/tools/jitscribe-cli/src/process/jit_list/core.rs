//! The code that the process of a core file had registered.
//!
//! A core file has the lists, and the files in which their heads are found are those of this machine: if one was replaced since, there is no list where it
//! says.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use found_code::{Compilers, Finder, Mapped, Poll};
use gdb_jit_list::{Change, Heads, List, ReadAt};
use jitdump::Writer;

use super::code::{CodeWriter, RegisteredAt};
use crate::files::{Opened, open_regular};
use crate::process::core::Core;

/// The most bytes that are scanned for code.
const SCANNED: u64 = 4 << 30;
/// The most files that are searched for heads.
const FILES: usize = 4096;

/// What was registered.
#[derive(Debug)]
pub struct RegisteredInCore {
    /// A jitdump of the codes.
    pub dump: Vec<u8>,
    /// How many there are.
    pub codes: u64,
    /// How many of them were found, not registered.
    pub found: u64,
    /// Whether there may be more code, which is not read.
    pub is_full: bool,
}

impl RegisteredInCore {
    /// Reads the lists. `None` if there is no code in them.
    pub fn of(core: &Core) -> Option<Self> {
        let executable: Vec<_> = core.anonymous_code().collect();
        // A core file does not say when.
        let clock = None;
        let mut writer = CodeWriter::new(core.notes().pid.unwrap_or(0), clock);
        let mut dump = writer.dump(0)?;
        let (mut codes, mut list) = (0_u64, List::default());
        list.poll(core, &heads(core), |change| {
            if let Change::Registered { object, .. } = change {
                let written =
                    writer.write(object, core, &executable, RegisteredAt::default(), &mut dump);
                codes += written.map_or(0, |written| written.len() as u64);
            }
        });
        let is_full = list.is_full() || writer.is_full();
        let found = find(core, &executable, &mut writer, &mut dump);
        codes += found;
        (codes > 0).then(|| Self { dump: dump.into_sink(), codes, found, is_full })
    }
}

/// Writes the code of compilers that do not announce it. Their files are not searched: those of today may be others.
fn find(
    core: &Core,
    executable: &[Range<u64>],
    writer: &mut CodeWriter,
    dump: &mut Writer<Vec<u8>>,
) -> u64 {
    let mapped = Mapped { data: core.writable().collect(), code: executable.to_vec() };
    let poll = Poll {
        memory: core,
        mapped: &mapped,
        compilers: Compilers::ALL,
        bytes: SCANNED,
        now: 0,
        last: 0,
    };
    let mut found = 0;
    Finder::default().poll(
        &poll,
        |_| None,
        |change| {
            if let found_code::Change::Found { code, since, .. } = change {
                found += u64::from(writer.write_found(&code, core, since, dump).is_some());
            }
        },
    );
    found
}

/// The addresses of the heads.
fn heads(core: &Core) -> Vec<u64> {
    let mut of_file: HashMap<&[u8], Option<Heads>> = HashMap::new();
    let mut found = Vec::new();
    // gdb leaves the code of files out of a core file: only the notes have it.
    for mapped in &core.notes().files {
        if of_file.len() == FILES {
            break;
        }
        let heads = of_file.entry(&mapped.path).or_insert_with(|| {
            let file = open_regular(Path::new(OsStr::from_bytes(&mapped.path))).ok()?;
            Heads::find(&MappedOnDisk(file))
        });
        let of_mapping =
            heads.iter().flat_map(|heads| heads.in_process(mapped.range.clone(), mapped.offset));
        found.extend(of_mapping);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A file that was mapped.
struct MappedOnDisk(Opened);

impl ReadAt for MappedOnDisk {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        jitdump::ReadAt::read_at(&self.0, buffer, at).unwrap_or(0)
    }
}

impl ReadAt for Core {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        self.read(at, buffer).unwrap_or(0)
    }
}
