//! The rule for which code a MOVE refers to.

use alloc::collections::BTreeMap;

use crate::piece::CodeId;
use crate::process::{AddressSpaceId, Inherited};

/// Determines which code a MOVE refers to, among the codes of its source.
///
/// A MOVE identifies a code twice: by the index of its LOAD and by the old address. Indices should be unique but are
/// not always, and records may be lost, so the two may disagree. The MOVE refers to the first of these that applies:
///
/// 1. `named`, the last code that was loaded under the index, if it is at the old address;
/// 2. `put_there`, the last code that was put at the old address, if it is still there;
/// 3. `named`, wherever it is: the record that moved it to the old address was lost, and its place is now known
///    again;
/// 4. otherwise none, and the MOVE has no effect.
///
/// `place` returns where a code is: the address at which its last LOAD or MOVE put its first byte, until it is
/// unloaded. Code that was written over it since then does not matter: threads write their records in any order, so
/// the LOAD of its replacement may precede its own MOVE. Code that was unloaded has no place, and cannot be moved.
pub fn moved_code<Id: Copy>(
    old_address: u64,
    named: Option<Id>,
    put_there: Option<Id>,
    place: impl Fn(Id) -> Option<u64>,
) -> Option<Id> {
    let is_there = |&code: &Id| place(code) == Some(old_address);
    let lost = || named.filter(|&code| place(code).is_some());
    named.filter(is_there).or(put_there.filter(is_there)).or_else(lost)
}

/// Where the codes of one source are. Events must be added one address space after the other (a parent before its
/// children), and within each address space in the order of time. Of several events at the same time, a later one
/// replaces an earlier one.
///
/// Each table is keyed by address space, key and time. A forked child finds the entries of its own address space or, if
/// it has none for the key, those of its parent as of the fork.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// The code that was loaded under an index.
    by_index: BTreeMap<(AddressSpaceId, u64, u64), CodeId>,
    /// The code that was put at an address.
    by_address: BTreeMap<(AddressSpaceId, u64, u64), CodeId>,
    /// Where a code is; `None` after it was unloaded.
    places: BTreeMap<(AddressSpaceId, CodeId, u64), Option<Place>>,
}

/// Where a code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The address of its first byte.
    pub(crate) address: u64,
    /// The number that it has there.
    pub(crate) here: CodeId,
}

impl Moves {
    /// Records that `code` was loaded under `index`.
    pub(crate) fn load(
        &mut self,
        (space, time): (AddressSpaceId, u64),
        index: u64,
        code: CodeId,
        at: u64,
    ) {
        self.by_index.insert((space, index, time), code);
        self.put((space, time), code, Place { address: at, here: code });
    }

    /// Records that `code`, by the number of its LOAD, is now at another place.
    pub(crate) fn put(&mut self, (space, time): (AddressSpaceId, u64), code: CodeId, place: Place) {
        self.by_address.insert((space, place.address, time), code);
        self.places.insert((space, code, time), Some(place));
    }

    /// Records that `code` was unloaded. Returns the number that it had at its last place.
    pub(crate) fn unload(
        &mut self,
        (space, time): (AddressSpaceId, u64),
        lineage: &[Inherited],
        code: CodeId,
    ) -> Option<CodeId> {
        let last = self.place(lineage, code);
        self.places.insert((space, code, time), None);
        Some(last?.here)
    }

    /// Finds the code that a MOVE refers to in the address space at the start of `lineage`, and its place.
    pub(crate) fn find(
        &self,
        lineage: &[Inherited],
        index: u64,
        old_address: u64,
    ) -> Option<(CodeId, Place)> {
        let named = last(&self.by_index, lineage, index);
        let put_there = last(&self.by_address, lineage, old_address);
        let place = |code| Some(self.place(lineage, code)?.address);
        let code = moved_code(old_address, named, put_there, place)?;
        Some((code, self.place(lineage, code)?))
    }

    fn place(&self, lineage: &[Inherited], code: CodeId) -> Option<Place> {
        last(&self.places, lineage, code).flatten()
    }
}

/// The last entry for `key` in `table`, in the nearest address space that has any.
fn last<Key: Copy + Ord, Value: Copy>(
    table: &BTreeMap<(AddressSpaceId, Key, u64), Value>,
    lineage: &[Inherited],
    key: Key,
) -> Option<Value> {
    lineage.iter().find_map(|&Inherited { space, as_of }| {
        let (_, &value) = table.range((space, key, 0)..=(space, key, as_of)).next_back()?;
        Some(value)
    })
}
