//! Debug entries whose file names contain NULs.
//!
//! V8 writes some file names (those of optimized code whose script name is not a flat one-byte string) from memory
//! that it has already freed. The allocator has overwritten the first 16 bytes of the name, and these bytes contain
//! NULs. A reader that takes the first NUL for the end of the name reads everything after it at wrong positions. The
//! sizes are right, though, and addresses show where entries begin.

use core::ops::Range;

use crate::debug_info::{DebugEntries, DebugEntry, EntryName};
use crate::endian::{Endian, Fields, to_usize};

/// How many bytes of a freed block the allocator (glibc's) overwrites.
const OVERWRITTEN: usize = 16;

/// Maximum number of digits of a line or a column.
const MAX_DIGITS: usize = 10;

/// The maximum distance of an entry's address from its code for the address to be accepted.
pub(crate) const NEAR: u64 = 1 << 24;

/// The entries of one code, read across NULs in their names.
#[derive(Clone, Debug)]
pub(crate) struct NearEntries<'a> {
    entries: DebugEntries<'a>,
    /// Where addresses of entries are accepted: near the code.
    near: Range<u64>,
    /// Where the address behind a garbled name must be: within the code.
    within: Range<u64>,
    /// Name of the code, in which V8 includes the file's name.
    code_name: &'a [u8],
    /// Whether a name in this record contained NULs.
    garbled: bool,
    /// Whether the entries can no longer be repaired.
    is_lost: bool,
}

impl<'a> NearEntries<'a> {
    /// `within` is the range of entries' addresses of the code, with the dump's bias.
    pub(crate) fn new(entries: DebugEntries<'a>, within: Range<u64>, code_name: &'a [u8]) -> Self {
        let near = within.start.saturating_sub(NEAR)..within.end.saturating_add(NEAR);
        Self { entries, near, within, code_name, garbled: false, is_lost: false }
    }

    /// Whether a name in this record contained NULs, as far as it was read.
    pub(crate) fn is_garbled(&self) -> bool {
        self.garbled
    }

    /// Length of the name that begins at `start`, if it extends past its first NUL.
    fn garbled_len(&mut self, start: &'a [u8]) -> Option<usize> {
        let rest = self.entries.fields();
        let read = start.len().checked_sub(rest.rest.len())?;
        if self.entries.is_done() {
            // What is behind the last entry may be an extension. It is the rest of the name only if names are
            // garbled.
            let more = rest.rest.iter().rposition(|byte| *byte != 0).filter(|_| self.garbled)?;
            return read.checked_add(more)?.checked_add(1);
        }
        if address(rest.rest, rest.endian).is_none_or(|next| self.near.contains(&next)) {
            return None;
        }
        let found = (read..start.len()).find(|at| {
            let behind_nul = at.checked_sub(1).and_then(|before| start.get(before)) == Some(&0);
            let next = start.get(*at..).and_then(|bytes| address(bytes, rest.endian));
            behind_nul && next.is_some_and(|next| self.within.contains(&next))
        });
        self.is_lost = found.is_none();
        found?.checked_sub(1)
    }

    /// The file's name as far as it can be recovered: complete from the name of the code, which V8 ends with
    /// `file:line` or `file:line:column`, or else what the allocator left of it.
    fn recovered_name(&self, garbled: &'a [u8]) -> &'a [u8] {
        let left = garbled.get(OVERWRITTEN..).unwrap_or(&[]);
        let file = without_number(without_number(self.code_name));
        let whole = file.len().checked_sub(garbled.len()).and_then(|start| file.get(start..));
        whole.filter(|whole| !left.is_empty() && whole.ends_with(left)).unwrap_or(left)
    }
}

impl<'a> Iterator for NearEntries<'a> {
    type Item = DebugEntry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // The name is behind the 16 bytes of the entry's fields.
        let start = self.entries.fields().rest.get(to_usize(16)..).unwrap_or(&[]);
        let mut entry = self.entries.next()?.ok()?;
        if self.is_lost || entry.name == EntryName::Same {
            return Some(entry);
        }
        if !self.near.contains(&entry.addr) {
            self.is_lost = true;
        } else if let Some(len) = self.garbled_len(start) {
            self.garbled = true;
            entry.name = EntryName::Path(self.recovered_name(start.get(..len).unwrap_or(&[])));
            self.entries.skip_to(start.get(len.saturating_add(1)..).unwrap_or(&[]));
        }
        Some(entry)
    }
}

fn address(bytes: &[u8], endian: Endian) -> Option<u64> {
    Fields::new(bytes, endian).u64()
}

/// `text` without a colon and a decimal number at its end, if it ends like this.
fn without_number(text: &[u8]) -> &[u8] {
    let digits =
        text.iter().rev().take(MAX_DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
    let split = text.len().checked_sub(digits).and_then(|at| text.split_at_checked(at));
    match split {
        Some(([before @ .., b':'], [_, ..])) => before,
        _ => text,
    }
}
