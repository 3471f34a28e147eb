//! What a runtime calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use code_image::Code;
use unwind_info::Unwind;
use unwind_info::windows::{Piece, encode};

use crate::region::Region;
use crate::rest::Resting;
use crate::table::Function;

/// What Windows knows of this process's jitted code. See the [crate's documentation](crate).
///
/// Every method may be called from any thread. None fails: what cannot be described is left out.
#[derive(Debug)]
pub struct Unwinders {
    known: Mutex<Known>,
    may_grow: bool,
}

#[derive(Debug, Default)]
struct Known {
    /// By where they begin.
    regions: BTreeMap<u64, Region>,
    resting: Resting,
}

impl Unwinders {
    /// The unwinder of this process: Windows has one always.
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(Self { known: Mutex::default(), may_grow: true })
    }

    /// As where no growable tables are to be had.
    #[doc(hidden)]
    #[must_use]
    pub fn with_plain_tables() -> Self {
        Self { known: Mutex::default(), may_grow: false }
    }

    /// New code, which must not run before this returns; what was known of code in its place is forgotten. Its frames
    /// are described by `unwind`; code without is passed over.
    pub fn load(&self, code: &Code<'_>, unwind: Option<&Unwind<'_>>) {
        let mut infos = Vec::with_capacity(32);
        let pieces = unwind.and_then(|unwind| encode(code.size, unwind, &mut infos).ok());
        let mut known = self.lock();
        known.forget(code.start, code.start.saturating_add(code.size));
        if let Some(pieces) = pieces {
            let all = pieces.iter().map(|piece| (piece, info_of(piece, &infos)));
            known.add(code.start, all, self.may_grow);
        }
        known.drop_empty(code.start);
    }

    /// The code that begins at `from` and has `size` bytes runs at `to` from now on.
    pub fn moved(&self, from: u64, to: u64, size: u64) {
        let mut known = self.lock();
        // They hold no addresses, and so serve wherever the code is.
        let frames = known.frames(from, size);
        known.forget(to, to.saturating_add(size));
        let all = frames.iter().map(|(piece, info)| (piece, info.as_slice()));
        known.add(to, all, self.may_grow);
        known.drop_empty(from);
        known.drop_empty(to);
    }

    /// The code that begins at `address` and has `size` bytes runs no more, nor is it on any stack.
    pub fn unload(&self, address: u64, size: u64) {
        let mut known = self.lock();
        known.forget(address, address.saturating_add(size));
        known.drop_empty(address);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a piece's UNWIND_INFO: a head of four, and an even number of codes.
fn info_of<'i>(piece: &Piece, infos: &'i [u8]) -> &'i [u8] {
    let info = infos.get(piece.info as usize..).unwrap_or_default();
    let codes = info.get(2).map_or(0, |count| usize::from(*count)).next_multiple_of(2);
    info.get(..codes.saturating_mul(2).saturating_add(4)).unwrap_or_default()
}

impl Known {
    fn region(&mut self, address: u64) -> Option<&mut Region> {
        let (_, region) = self.regions.range_mut(..=address).next_back()?;
        region.range().contains(&address).then_some(region)
    }

    fn add<'p>(
        &mut self,
        start: u64,
        pieces: impl Iterator<Item = (&'p Piece, &'p [u8])>,
        may_grow: bool,
    ) {
        if self.region(start).is_none() {
            let Some(region) = Region::around(start, may_grow) else { return };
            // Regions that lie there are of memory that is gone, whose code nobody has unloaded.
            while let Some((&key, _)) = self.regions.range(..region.range().end).next_back()
                && self.regions.get(&key).is_some_and(|old| old.range().end > region.range().start)
                && let Some(old) = self.regions.remove(&key)
            {
                old.retire(&mut self.resting);
            }
            self.regions.insert(region.range().start, region);
        }
        let Some((_, region)) = self.regions.range_mut(..=start).next_back() else { return };
        for (piece, info) in pieces {
            let address = |distance: u32| start.saturating_add(distance.into());
            let (begin, end) = (address(piece.begin), address(piece.end));
            if end <= region.range().end
                && let Some(info) = region.place(info)
            {
                region.add(Function { begin, end, info }, &mut self.resting);
            }
        }
    }

    fn forget(&mut self, start: u64, end: u64) {
        let first = self.region(start).map_or(start, |region| region.range().start);
        for region in self.regions.range_mut(first..end.max(first)).map(|(_, region)| region) {
            region.forget(start, end, |_| {});
        }
    }

    /// What is known of the frames of a code. It is forgotten.
    fn frames(&mut self, start: u64, size: u64) -> Vec<(Piece, Vec<u8>)> {
        let end = start.saturating_add(size);
        let Some(region) = self.region(start) else { return Vec::new() };
        let mut functions = Vec::new();
        region.forget(start, end, |function| functions.push(function));
        let frames = functions.iter().rev().filter_map(|function| {
            let distance = |address: u64| u32::try_from(address.checked_sub(start)?).ok();
            let (begin, end) = (distance(function.begin)?, distance(function.end)?);
            Some((Piece { begin, end, info: 0 }, region.info(function.info)?.to_vec()))
        });
        frames.collect()
    }

    /// A region in which nothing is left may be other memory by the next time.
    fn drop_empty(&mut self, address: u64) {
        let empty = self.region(address).filter(|region| region.is_empty());
        if let Some(start) = empty.map(|region| region.range().start)
            && let Some(region) = self.regions.remove(&start)
        {
            region.retire(&mut self.resting);
        }
    }
}
