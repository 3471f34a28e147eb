//! The calls that contain an address: by definition, as a table for the tools, and as addr2line's library reads it.

use std::path::Path;

use addr2line::Context;
use code_image::VisibleCode;
use jit_code::Inlined;

use super::image::{Bytes, Dwarf, Unit, dwarf};

/// File, line, column.
pub type Place = (String, u32, u32);

/// A function and the call in the function around it; `None` for the outermost, and if it is not known.
pub type Caller = (String, Option<Place>);

/// The calls that contain an address, from the outermost on, directly from the definition.
pub fn chain<'a>(code: &VisibleCode<'a>, address: u64) -> Vec<&'a Inlined<'a>> {
    let mut chain: Vec<&Inlined<'_>> = Vec::new();
    let mut around = None;
    let at = |offset: u32| code.code.address + u64::from(offset);
    while code.visible.contains(&address) && chain.len() < 127 {
        let inner = code.code.inlined.iter().zip(0..).find(|(call, number)| {
            let mut ranges = call.ranges.iter().map(|range| at(range.start)..at(range.end));
            let is_inside = call.parent == around && around < Some(*number);
            is_inside && ranges.any(|range| range.contains(&address))
        });
        let Some((call, number)) = inner else { break };
        chain.push(call);
        around = Some(number);
    }
    chain
}

/// The result that a reader should give for an address: functions from the innermost on.
pub fn expected(code: &VisibleCode<'_>, address: u64) -> Vec<Caller> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut callers = vec![(text(code.code.name), None)];
    for call in chain(code, address) {
        let known = !call.file.is_empty() && call.line != 0;
        let place = known.then(|| (text(call.file), call.line, call.column));
        callers.push((text(call.name), place));
    }
    callers.reverse();
    callers
}

/// Passes the debug info of an image to `look`.
fn with_dwarf<T>(path: &Path, look: impl FnOnce(Dwarf<'_>) -> T) -> T {
    let data = std::fs::read(path).unwrap();
    look(dwarf(&object::File::parse(&*data).unwrap()))
}

/// Reads an image, and looks up each virtual address with addr2line's library.
pub fn read(path: &Path, addresses: impl Iterator<Item = u64>) -> Vec<Vec<Caller>> {
    with_dwarf(path, |dwarf| {
        let context = Context::from_dwarf(dwarf).unwrap();
        addresses.map(|address| callers(&context, address)).collect()
    })
}

fn callers(context: &Context<Bytes<'_>>, address: u64) -> Vec<Caller> {
    let mut frames = context.find_frames(address).skip_all_loads().unwrap();
    let mut names = Vec::new();
    let mut places = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        let Some(function) = frame.function else { continue };
        names.push(function.raw_name().unwrap().into_owned());
        let place = frame.location.and_then(|place| {
            Some((place.file?.to_owned(), place.line?, place.column.unwrap_or(0)))
        });
        places.push(place);
    }
    // a frame has its own position; this list has the position in the frame around it
    let callers = places.into_iter().skip(1).chain([None]);
    names.into_iter().zip(callers).collect()
}

/// The number of entries about inlining in an image.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub calls: usize,
    /// Functions that calls refer to.
    pub functions: usize,
    /// Calls around the innermost call, and that one.
    pub deepest: usize,
}

/// Checks that the calls of every function nest: each within the one around it and disjoint from its siblings.
pub fn check_nesting(path: &Path) -> Counts {
    with_dwarf(path, |dwarf| {
        let mut counts = Counts::default();
        let mut units = dwarf.units();
        while let Some(header) = units.next().unwrap() {
            nesting_in_unit(&dwarf, &dwarf.unit(header).unwrap(), &mut counts);
        }
        counts
    })
}

fn nesting_in_unit<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, counts: &mut Counts) {
    // the entries around, with their numbers and ranges
    let mut around: Vec<(usize, Vec<gimli::Range>)> = Vec::new();
    // of all calls: number of the entry around, start, end
    let mut parts = Vec::new();
    let mut number = 0;
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().unwrap() {
        number += 1;
        let depth = usize::try_from(entry.depth()).unwrap();
        around.truncate(depth);
        let mut ranges: Vec<gimli::Range> = Vec::new();
        let mut found = dwarf.die_ranges(unit, entry).unwrap();
        while let Some(range) = found.next().unwrap() {
            assert!(range.begin < range.end);
            assert!(ranges.last().is_none_or(|last| last.end < range.begin));
            ranges.push(range);
        }
        if entry.has_attr(gimli::DW_AT_inline) {
            counts.functions += 1;
            assert_eq!((depth, ranges.len()), (1, 0));
        } else {
            assert_ne!(ranges.len(), 0);
        }
        if entry.tag() == gimli::DW_TAG_inlined_subroutine {
            counts.calls += 1;
            counts.deepest = counts.deepest.max(depth - 1);
            let (parent, outer) = &around[depth - 1];
            for range in &ranges {
                let at = outer.partition_point(|part| part.end < range.end);
                assert!(outer[at].begin <= range.begin && range.end <= outer[at].end);
                parts.push((*parent, range.begin, range.end));
            }
        }
        around.push((number, ranges));
    }
    parts.sort_unstable();
    assert!(parts.is_sorted_by(|left, right| left.0 != right.0 || left.2 <= right.1));
}
