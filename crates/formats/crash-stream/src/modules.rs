//! Modules for JIT-compiled code. minidump-processor asks its symbol provider only about addresses in a module.

use std::ops::Range;

use jitdump::{CodeEvent, Dump};

use crate::append::Extended;
use crate::error::Error;
use crate::minidump::{MODULE_LIST, find, items, module_range};
use crate::read::CrashStream;

/// The name of the modules.
pub const CODE_MODULE: &str = "[JIT code]";

const MODULE_SIZE: usize = 108;
/// Offset in a module of the offset of its name.
const NAME: usize = 20;

/// A copy of a minidump in which the codes of its [`CrashStream`] are modules. It is for minidump-processor, and not to be kept. `None`
/// if the minidump has no such stream.
///
/// Code that is in a module already, such as that in a `CodeArena`, gets no other one.
///
/// # Errors
/// If this is not a minidump, or if it or the stream is damaged.
pub fn with_code_modules(minidump: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let Some(stream) = CrashStream::find(minidump)? else { return Ok(None) };
    let entry = find(minidump, MODULE_LIST)?;
    let list = entry.map(|entry| entry.stream(minidump)).transpose()?.unwrap_or_default();
    let (count, modules) = items(list, MODULE_SIZE);
    let modules: Vec<&[u8]> = modules.chunks_exact(MODULE_SIZE).take(count).collect();
    let taken = modules.iter().filter_map(|module| module_range(module)).collect();
    let new = free_parts(codes_of(&stream), taken);

    let total = modules.len().saturating_add(new.len());
    let size = total.saturating_mul(MODULE_SIZE).saturating_add(256);
    let mut extended = Extended::new(minidump, size)?;
    let mut name = Vec::new();
    let text: Vec<u8> = CODE_MODULE.encode_utf16().flat_map(u16::to_ne_bytes).collect();
    name.extend_from_slice(&u32::try_from(text.len()).unwrap_or(0).to_ne_bytes());
    name.extend_from_slice(&text);
    name.extend_from_slice(&[0; 2]);
    let [name, _] = extended.add(&name)?;
    let mut list = Vec::new();
    list.extend_from_slice(&u32::try_from(total).map_err(|_| Error::TooLarge)?.to_ne_bytes());
    modules.iter().for_each(|module| list.extend_from_slice(module));
    for range in new {
        let mut module = [0; MODULE_SIZE];
        let size = u32::try_from(range.end.saturating_sub(range.start)).unwrap_or(u32::MAX);
        let mut put = |at: usize, field: &[u8]| {
            if let Some(place) = module.get_mut(at..).and_then(|rest| rest.get_mut(..field.len())) {
                place.copy_from_slice(field);
            }
        };
        put(0, &range.start.to_ne_bytes());
        put(8, &size.to_ne_bytes());
        put(NAME, &name.to_ne_bytes());
        list.extend_from_slice(&module);
    }
    let [at, size] = extended.add(&list)?;
    match entry {
        Some(entry) => {
            extended.set(entry.at.saturating_add(4), size);
            extended.set(entry.at.saturating_add(8), at);
        }
        None => extended.add_entry(MODULE_LIST, [at, size])?,
    }
    Ok(Some(extended.bytes))
}

/// The ranges of the codes in a stream.
fn codes_of(stream: &CrashStream<'_>) -> Vec<Range<u64>> {
    let Ok(dump) = Dump::parse(stream.dump) else { return Vec::new() };
    let codes = dump.codes().filter_map(|event| match event {
        Ok(CodeEvent::Load(code)) => Some(code.address..code.end()),
        _ => None,
    });
    codes.filter(|range| !range.is_empty()).collect()
}

/// The parts of `ranges` that are not `taken`: ascending, without overlaps.
fn free_parts(mut ranges: Vec<Range<u64>>, mut taken: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    taken.retain(|range| !range.is_empty());
    taken.sort_unstable_by_key(|range| range.start);
    let mut taken = taken.into_iter().peekable();
    let mut free = Vec::new();
    // All before this is taken, or in `free`.
    let mut done = 0;
    for range in ranges {
        let mut start = range.start.max(done);
        while start < range.end {
            while taken.next_if(|taken| taken.end <= start).is_some() {}
            match taken.peek() {
                Some(next) if next.start <= start => start = next.end,
                Some(next) if next.start < range.end => {
                    free.push(start..next.start);
                    start = next.end;
                }
                _ => {
                    free.push(start..range.end);
                    start = range.end;
                }
            }
        }
        done = done.max(start);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::free_parts;

    #[test]
    fn modules_are_where_there_are_none() {
        let ranges = vec![50..60, 10..20, 15..30, 100..200];
        let taken = vec![12..14, 25..55, 0..0, 150..151, 170..300];
        let expected = [10..12, 14..20, 20..25, 55..60, 100..150, 151..170];
        assert_eq!(free_parts(ranges, taken), expected);
    }
}
