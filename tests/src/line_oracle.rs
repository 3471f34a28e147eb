//! The source line of an address according to a jitdump, from the raw records only.
//!
//! Written for obviousness, not speed, and apart from the crate that is tested with it. It knows the dumps of
//! V8 and LLVM alone: little-endian, and with 0x40 added to each line's address.

use std::collections::BTreeMap;
use std::path::Path;

/// How far V8 and LLVM put the addresses of lines behind the code they are about.
const BIAS: u64 = 0x40;

/// One LOAD with the lines of the DEBUG_INFO record before it.
#[derive(Debug)]
struct Load {
    size: u64,
    /// Address without the bias, file, line, column.
    lines: Vec<(u64, String, u32, u32)>,
}

/// The lines of codes whose address was used once, so that time does not matter.
#[derive(Debug)]
pub struct LineOracle {
    loads: BTreeMap<u64, Load>,
}

impl LineOracle {
    /// Reads a dump that V8 or LLVM wrote to its end.
    pub fn read(path: &Path) -> Self {
        let dump = std::fs::read(path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let mut loads: BTreeMap<u64, Vec<Load>> = BTreeMap::new();
        let mut pending = Vec::new();
        let mut at = u32_at(&dump, 8) as usize;
        while at + 16 <= dump.len() {
            let (kind, size) = (u32_at(&dump, at), u32_at(&dump, at + 4) as usize);
            let body = &dump[at + 16..at + size];
            match kind {
                0 => {
                    let load = Load { size: u64_at(body, 24), lines: std::mem::take(&mut pending) };
                    loads.entry(u64_at(body, 16)).or_default().push(load);
                }
                2 => pending = debug_entries(body),
                _ => {}
            }
            at += size;
        }
        let loads = loads
            .into_iter()
            .filter_map(|(address, loads)| Some((address, <[Load; 1]>::try_from(loads).ok()?)))
            .map(|(address, [load])| (address, load))
            .collect();
        Self { loads }
    }

    /// The file and line at an address: `None` where the dump has no lines for its code or was used for several,
    /// `Some(None)` if the compiler records that there is no line.
    pub fn at(&self, ip: u64) -> Option<Option<(&str, u32)>> {
        Some(self.position(ip)?.map(|(file, line, _)| (file, line)))
    }

    /// The same with the column.
    pub fn position(&self, ip: u64) -> Option<Option<(&str, u32, u32)>> {
        let (start, load) = self.loads.range(..=ip).next_back()?;
        if ip - start >= load.size || load.lines.is_empty() {
            return None;
        }
        let row = load.lines.iter().rfind(|(address, ..)| *address <= ip)?;
        Some((row.2 != 0).then_some((row.1.as_str(), row.2, row.3)))
    }
}

fn debug_entries(body: &[u8]) -> Vec<(u64, String, u32, u32)> {
    let mut entries: Vec<(u64, String, u32, u32)> = Vec::new();
    let mut at = 16;
    for _ in 0..u64_at(body, 8) {
        let (address, line) = (u64_at(body, at) - BIAS, u32_at(body, at + 8));
        let column = u32_at(body, at + 12);
        let name = &body[at + 16..];
        let name = &name[..name.iter().position(|&byte| byte == 0).expect("a terminated name")];
        at += 16 + name.len() + 1;
        let file = match (name, entries.last()) {
            // "The same file as before": V8 has written more than one form of it.
            ([0xff, ..], Some((_, file, ..))) => file.clone(),
            _ => String::from_utf8_lossy(name).into_owned(),
        };
        entries.push((address, file, line, column));
    }
    entries.sort_by_key(|(address, ..)| *address);
    entries
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
