//! The entries of one unit for inlined calls.

use std::ops::Range;

use fallible::{HashMap, Vec};

use super::abbreviations::{INLINED_FUNCTION, call};
use super::calls::{Call, Calls};
use super::constants::DW_INL_INLINED;
use super::files::FileTable;
use super::names::Names;
use crate::encode::Encoder;

/// What the entries of inlined calls refer to.
///
/// References are relative to the start of the unit and of sections. These are known only once the unit is complete
/// and its place in the image is fixed. Until then, space is reserved for the references.
#[derive(Debug, Clone, Default)]
pub(super) struct Inlining {
    /// Number of calls.
    pub(super) calls: usize,
    /// The offset among the entries of each called function, by its name.
    functions: HashMap<Vec<u8>, u64>,
    /// Reserved space among the entries for the position of a name, in the order in which the names occurred.
    names: Vec<(usize, Vec<u8>)>,
    /// Reserved space among the entries for a reference to a function, and the offset of the function.
    references: Vec<(usize, u64)>,
    /// Reserved space among the entries for the position of a range list, one for each list.
    lists: Vec<usize>,
    /// The range lists, each terminated by an empty range.
    ranges: Vec<Range<u64>>,
}

impl Inlining {
    /// The offsets among `entries` of the called functions, in the order of the calls. Functions that are new in this
    /// unit are added.
    pub(super) fn origins(&mut self, entries: &mut Encoder, calls: &Calls<'_>) -> Vec<u64> {
        let origin = |call: &Call<'_>| {
            let name = call.inlined.name;
            if let Some(&origin) = self.functions.get(name) {
                return origin;
            }
            let origin = entries.len();
            entries.uleb(INLINED_FUNCTION);
            self.names.push((entries.bytes.len(), Vec::from(name)));
            entries.u32(0);
            entries.u8(DW_INL_INLINED);
            self.functions.insert(Vec::from(name), origin);
            origin
        };
        calls.iter().map(origin).collect()
    }

    /// Writes the entries of the calls in one function, up to the end of that function's children.
    pub(super) fn tree(
        &mut self,
        entries: &mut Encoder,
        files: &mut FileTable,
        calls: &Calls<'_>,
        origins: &[u64],
    ) {
        let depths = calls.iter().map(|call| call.depth);
        // after the last call comes the next sibling of the function
        let next_depths = depths.skip(1).map(Some).chain([None]);
        for ((inlined, next_depth), &origin) in calls.iter().zip(next_depths).zip(origins) {
            self.calls += 1;
            let parts = calls.parts(inlined);
            let place = inlined.place();
            let one_part = match parts {
                [part] => Some(part),
                _ => None,
            };
            let has_calls = next_depth > Some(inlined.depth);
            entries.uleb(call(has_calls, one_part.is_none(), place.is_some()));
            self.references.push((entries.bytes.len(), origin));
            entries.u32(0);
            if let Some((file, line, column)) = place {
                entries.uleb(files.number(file));
                entries.uleb(u64::from(line));
                entries.uleb(u64::from(column));
            }
            if let Some(part) = one_part {
                entries.word(part.start);
                entries.uleb(part.end.saturating_sub(part.start));
            } else {
                self.lists.push(entries.bytes.len());
                entries.u32(0);
                self.ranges.extend_from_slice(parts);
                self.ranges.push(0..0);
            }
            // the ends of the calls around this one that do not contain the next call
            for _ in next_depth.unwrap_or(0)..inlined.depth {
                entries.u8(0);
            }
        }
        entries.u8(0);
    }

    /// Fills in the references of the unit's `entries`, which begin at `entries_offset` in the unit, and appends the
    /// range lists, relative to `base`, to `.debug_ranges`.
    pub(super) fn resolve(
        &self,
        entries: &mut Encoder,
        entries_offset: u64,
        base: u64,
        names: &mut Names,
        section: &mut Encoder,
    ) {
        for (room, name) in &self.names {
            entries.set_u32(*room, names.place(name));
        }
        // sections larger than 4 GiB are rejected when the file is finished
        for &(room, origin) in &self.references {
            entries.set_u32(room, entries_offset.saturating_add(origin) as u32);
        }
        let lists = self.ranges.split_inclusive(Range::is_empty);
        for (&room, list) in self.lists.iter().zip(lists) {
            entries.set_u32(room, section.len() as u32);
            for range in list {
                section.word(range.start.saturating_sub(base));
                section.word(range.end.saturating_sub(base));
            }
        }
    }
    /// Removes everything, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.calls = 0;
        self.functions.clear();
        self.names.clear();
        self.references.clear();
        self.lists.clear();
        self.ranges.clear();
    }
}
