//! The entries of one unit about inlined calls.

use std::collections::HashMap;
use std::ops::Range;

use super::abbreviations::{INLINED_FUNCTION, call};
use super::calls::{Call, Calls};
use super::constants::DW_INL_INLINED;
use super::files::FileTable;
use super::names::Names;
use crate::encode::Encoder;

/// What the entries of inlined calls refer to.
///
/// References count from the beginning of the unit and of sections, which are known once the unit is
/// complete and its place in the image is, too: until then there is room for them.
#[derive(Debug, Clone, Default)]
pub(super) struct Inlining {
    /// Number of calls.
    pub(super) calls: usize,
    /// By its name, where among the entries the function stands that calls refer to.
    functions: HashMap<Vec<u8>, u64>,
    /// Room among the entries for where a name is, in the order in which names came up.
    names: Vec<(usize, Vec<u8>)>,
    /// Room among the entries for a reference to the function at some place among them.
    references: Vec<(usize, u64)>,
    /// Room among the entries for where a list of ranges is, for one list after the other.
    lists: Vec<usize>,
    /// Lists of ranges, each closed by an empty one.
    ranges: Vec<Range<u64>>,
}

impl Inlining {
    /// Where among `entries` the functions stand that the calls are of, in the order of the calls;
    /// those that are new in this unit are added.
    pub(super) fn origins(&mut self, entries: &mut Encoder, calls: &Calls<'_>) -> Vec<u64> {
        let origin = |call: &Call<'_>| {
            let name = call.inlined.name;
            if let Some(&origin) = self.functions.get(name) {
                return origin;
            }
            let origin = entries.len();
            entries.uleb(INLINED_FUNCTION);
            self.names.push((entries.bytes.len(), name.to_vec()));
            entries.u32(0);
            entries.u8(DW_INL_INLINED);
            self.functions.insert(name.to_vec(), origin);
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
        // behind the last one comes what stands beside the function
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
            // the ends of the calls around this one that the next does not lie in
            for _ in next_depth.unwrap_or(0)..inlined.depth {
                entries.u8(0);
            }
        }
        entries.u8(0);
    }

    /// Fills in the references of the unit's `entries`, which begin at `entries_offset` in the unit,
    /// and appends the lists of ranges to `.debug_ranges`, from where they count from `base`.
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
        // sections beyond 4 GiB are refused when the file is finished
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
    /// Forgets all but its room.
    pub(super) fn clear(&mut self) {
        self.calls = 0;
        self.functions.clear();
        self.names.clear();
        self.references.clear();
        self.lists.clear();
        self.ranges.clear();
    }
}
