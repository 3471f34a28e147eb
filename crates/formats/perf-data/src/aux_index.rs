//! The index of AUXTRACE events: entries of file offset and size.

use crate::endian::{Cursor, Endian};

/// The new position of each AUXTRACE event.
#[derive(Debug, Default)]
pub(crate) struct AuxIndex {
    /// Offset in the input and in the output, ascending.
    moves: Vec<(u64, u64)>,
}

impl AuxIndex {
    pub(crate) fn moved(&mut self, from: u64, to: u64) {
        self.moves.push((from, to));
    }

    /// Rewrites the index with the new offsets. Entries whose event was not written are left out.
    pub(crate) fn rewrite(&self, index: &[u8], endian: Endian) -> Vec<u8> {
        let mut at = Cursor::new(index, endian);
        let _count = at.u64();
        let mut entries = Vec::new();
        let mut count = 0_u64;
        while let (Some(from), Some(size)) = (at.u64(), at.u64()) {
            let found = self.moves.binary_search_by_key(&from, |&(from, _)| from);
            if let Some(&(_, to)) = found.ok().and_then(|found| self.moves.get(found)) {
                entries.extend(endian.put_u64(to));
                entries.extend(endian.put_u64(size));
                count = count.saturating_add(1);
            }
        }
        let mut out = endian.put_u64(count).to_vec();
        out.extend(entries);
        out
    }
}
