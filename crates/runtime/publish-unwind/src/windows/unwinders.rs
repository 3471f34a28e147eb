//! The publisher, which a runtime calls.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fallible::{Map, Refused, Vec};
use jit_code::Code;
use unwind_info::windows::{Piece, encode};
use unwind_info::{Error, Machine, Saves};

use super::region::Region;
use super::retired::RetiredMemory;
use super::table::Function;

/// The registrations of jitted code with Windows. See the [crate's documentation](crate).
///
/// Every method may be called from any thread. None fails: code that cannot be described is left out.
#[derive(Debug)]
pub struct Unwinders {
    registrations: Mutex<Registrations>,
    may_grow: bool,
    /// Whether an allocation failed: nothing is registered any more.
    is_off: AtomicBool,
    /// Whether an allocation failed since the last call of [`Unwinders::take_refusal`].
    is_refused: AtomicBool,
}

#[derive(Debug, Default)]
struct Registrations {
    /// By their start addresses.
    regions: Map<u64, Region>,
    retired_memory: RetiredMemory,
}

impl Unwinders {
    /// Whether an allocation failed since the last call. In this case all registrations were removed, and no more code is
    /// registered.
    #[must_use]
    pub fn take_refusal(&self) -> bool {
        self.is_refused.load(Relaxed) && self.is_refused.swap(false, Relaxed)
    }

    /// Removes all registrations, and registers no more code, as if an allocation had failed.
    pub fn give_up(&self) {
        self.turn_off(&mut self.lock());
    }

    /// The unwinder of this process: Windows always has one.
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(Self::new(true))
    }

    /// For tests: behaves as if growable tables were not available.
    #[doc(hidden)]
    #[must_use]
    pub fn with_plain_tables() -> Self {
        Self::new(false)
    }

    fn new(may_grow: bool) -> Self {
        Self {
            registrations: Mutex::default(),
            may_grow,
            is_off: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Announces a code load. The code must not run before this returns. Earlier code at its address is unregistered. Code
    /// without unwind info, or with a ready section, is skipped.
    pub fn load(&self, code: &Code<'_>) {
        // `encode` reserves what it writes.
        let mut infos = Default::default();
        let pieces = code.unwind.map(|unwind| {
            let saves = Saves::find(Machine::X86_64, code.bytes.unwrap_or_default(), &unwind);
            let complete = encode(code.size, &saves.complete(unwind), &mut infos);
            // Windows cannot express everything.
            complete.or_else(|_| encode(code.size, &unwind, &mut infos))
        });
        self.change(|registrations| {
            registrations.forget(code.address, code.address.saturating_add(code.size));
            match pieces {
                Some(Ok(pieces)) => {
                    let all = pieces.iter().map(|piece| (piece, info_of(piece, &infos)));
                    registrations.add(code.address, all, self.may_grow)?;
                }
                Some(Err(Error::Memory)) => return Err(Refused),
                Some(Err(_)) | None => {}
            }
            registrations.drop_empty(code.address);
            Ok(())
        });
    }

    /// Announces that the code at `from` with `size` bytes now runs at `to`.
    pub fn moved(&self, from: u64, to: u64, size: u64) {
        self.change(|registrations| {
            // They contain no addresses, and so are valid wherever the code is.
            let frames = registrations.frames(from, size);
            fallible::so_far()?;
            registrations.forget(to, to.saturating_add(size));
            let all = frames.iter().map(|(piece, info)| (piece, info.as_slice()));
            registrations.add(to, all, self.may_grow)?;
            registrations.drop_empty(from);
            registrations.drop_empty(to);
            Ok(())
        });
    }

    /// Announces the unload of the code at `address` with `size` bytes, which does not run any more, nor is on any stack.
    pub fn unload(&self, address: u64, size: u64) {
        let mut registrations = self.lock();
        registrations.forget(address, address.saturating_add(size));
        registrations.drop_empty(address);
    }

    /// Changes the registrations, unless an allocation failed before. If one fails now, all are removed.
    fn change(&self, change: impl FnOnce(&mut Registrations) -> Result<(), Refused>) {
        if self.is_off.load(Relaxed) {
            return;
        }
        let mut registrations = self.lock();
        // Another thread may have failed to allocate while this one waited for the lock.
        if self.is_off.load(Relaxed) {
            return;
        }
        if fallible::attempt(|| change(&mut registrations)).and_then(|result| result).is_err() {
            self.turn_off(&mut registrations);
        }
    }

    fn turn_off(&self, registrations: &mut Registrations) {
        self.is_off.store(true, Relaxed);
        self.is_refused.store(true, Relaxed);
        registrations.end();
    }

    fn lock(&self) -> MutexGuard<'_, Registrations> {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a piece's UNWIND_INFO: a head of four bytes, and an even number of unwind codes.
fn info_of<'i>(piece: &Piece, infos: &'i [u8]) -> &'i [u8] {
    let info = infos.get(piece.info as usize..).unwrap_or_default();
    let codes = info.get(2).map_or(0, |count| usize::from(*count)).next_multiple_of(2);
    info.get(..codes.saturating_mul(2).saturating_add(4)).unwrap_or_default()
}

impl Registrations {
    fn region(&mut self, address: u64) -> Option<&mut Region> {
        let (_, region) = self.regions.range_mut(..=address).next_back()?;
        region.range().contains(&address).then_some(region)
    }

    fn add<'p>(
        &mut self,
        start: u64,
        pieces: impl Iterator<Item = (&'p Piece, &'p [u8])>,
        may_grow: bool,
    ) -> Result<(), Refused> {
        if self.region(start).is_none() {
            let Some(region) = Region::around(start, may_grow) else { return Ok(()) };
            // Regions that overlap belong to memory that was freed without unloading its code.
            while let Some((&key, _)) = self.regions.last_below(&region.range().end)
                && self.regions.get(&key).is_some_and(|old| old.range().end > region.range().start)
                && let Some(old) = self.regions.remove(&key)
            {
                old.retire(&mut self.retired_memory);
            }
            self.regions
                .try_insert(region.range().start, region)
                .map_err(|(refused, _)| refused)?;
        }
        let Some((_, region)) = self.regions.range_mut(..=start).next_back() else {
            return Ok(());
        };
        for (piece, info) in pieces {
            let address = |distance: u32| start.saturating_add(distance.into());
            let (begin, end) = (address(piece.begin), address(piece.end));
            if end <= region.range().end
                && let Some(info) = region.place(info)
            {
                fallible::so_far()?;
                region.add(Function { begin, end, info }, &mut self.retired_memory)?;
            }
        }
        Ok(())
    }

    fn forget(&mut self, start: u64, end: u64) {
        let first = self.region(start).map_or(start, |region| region.range().start);
        for region in self.regions.range_mut(first..end.max(first)).map(|(_, region)| region) {
            region.forget(start, end, |_| {});
        }
    }

    /// Removes and returns the registered frames of a code.
    fn frames(&mut self, start: u64, size: u64) -> Vec<(Piece, Vec<u8>)> {
        let end = start.saturating_add(size);
        let Some(region) = self.region(start) else { return Vec::new() };
        let mut functions = Vec::new();
        region.forget(start, end, |function| functions.push(function));
        let frames = functions.iter().rev().filter_map(|function| {
            let distance = |address: u64| u32::try_from(address.checked_sub(start)?).ok();
            let (begin, end) = (distance(function.begin)?, distance(function.end)?);
            Some((Piece { begin, end, info: 0 }, region.info(function.info)?.into()))
        });
        frames.collect()
    }

    /// Removes all registrations.
    fn end(&mut self) {
        for region in std::mem::take(&mut self.regions).into_values() {
            region.retire(&mut self.retired_memory);
        }
    }

    /// The memory of an empty region may be used for something else later.
    fn drop_empty(&mut self, address: u64) {
        let empty = self.region(address).filter(|region| region.is_empty());
        if let Some(start) = empty.map(|region| region.range().start)
            && let Some(region) = self.regions.remove(&start)
        {
            region.retire(&mut self.retired_memory);
        }
    }
}
