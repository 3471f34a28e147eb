//! Perf maps. They have no times: a line that comes later is newer.

use code_timeline::{AddressSpaceId, Code};

use crate::description::Description;
use crate::format::{Format, Options, Read, Source};
use crate::found::{Found, Place};

/// Perf maps. Any text may be one.
pub const PERF_MAP: Format =
    Format { name: "perf map", recognizes: |content| !content.contains(&0), read, describe };

fn read(content: &[u8], _: &Options<'_>) -> Result<Read, jitdump::Error> {
    let mut read = Read::default();
    let beginning = content.as_ptr().addr();
    for entry in perf_map::entries(content) {
        let Ok(entry) = entry else {
            read.damaged = read.damaged.saturating_add(1);
            continue;
        };
        let size = entry.end().saturating_sub(entry.address);
        if size == 0 {
            continue;
        }
        let at = entry.name.as_ptr().addr().saturating_sub(beginning);
        let name = at..at.saturating_add(entry.name.len());
        let code = Code { address: entry.address, size, origin: Place::Name(name) };
        read.history.load(AddressSpaceId::ONLY, 0, code);
    }
    Ok(read)
}

fn describe<'d>(_: &Source, found: &Found, content: &'d [u8]) -> Option<Description<'d>> {
    let Place::Name(name) = &found.place else { return None };
    Some(Description::of_name(content.get(name.clone())?, found.start))
}
