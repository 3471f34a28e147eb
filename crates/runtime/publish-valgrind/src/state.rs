//! The regions, and their object files.

use std::ops::Range;
use std::os::fd::AsFd;

use fallible::{Map, PathText};

use crate::elf;
use crate::error::{Cause, Error};
use crate::files::Files;
use crate::memory::{self, Kind};
use crate::object::Folder;
use crate::options::Options;
use crate::region::{Region, pages};
use crate::window::{self, PAGE};
use jit_code::{Code, Line};

/// A region takes over adjacent pages until it has this many codes or this size. The time for one more code
/// grows with the number of codes in its region, and with the number of regions.
const FULL: usize = 128;
const LARGE: u64 = 64 << 10;
/// Regions get larger in proportion to their number divided by this.
const MANY: usize = 512;
/// Valgrind's table of mappings has 30,000 entries, of which each region takes some.
const MOST: usize = 4000;
/// Larger code is skipped.
const LARGEST: u64 = 64 << 20;

/// All regions, by their first address. No two share a page.
#[derive(Debug)]
pub(crate) struct State {
    regions: Map<u64, Region>,
    files: Files,
    folder: Folder,
    /// A mapping that is known not to be an object file.
    known: Range<u64>,
}

/// The regions that become one with some pages.
enum Neighbours {
    /// One region, with these pages.
    One(Range<u64>),
    /// Any number of regions, whose first addresses are in this range.
    Many(Range<u64>),
}

impl Neighbours {
    /// A range with the first addresses of these regions, and of no others.
    fn keys(&self) -> Range<u64> {
        match self {
            Self::One(region) => region.start..region.start + 1,
            Self::Many(keys) => keys.clone(),
        }
    }
}

impl State {
    pub(crate) fn new(options: &Options) -> Self {
        Self { regions: Map::new(), files: Files::new(), folder: Folder::new(options), known: 0..0 }
    }

    /// Shows Valgrind a page of ours, to check whether Valgrind reads it.
    pub(crate) fn test(&mut self) -> Result<(), Error> {
        let page = window::spare_page().map_err(|cause| self.error(cause))?;
        let lines = [Line::new(0, "jitscribe", 1)];
        let code =
            Code::new(&[0; 16]).runs_at(page.address()).named("jitscribe::self_test").lines(&lines);
        let mut region = Region::new(page.address(), page.address() + PAGE);
        region.add(&code, &[0; 16], &mut self.files);
        let result = show(&mut region, &self.files, &self.folder)
            .map(|()| guest::valgrind::has_line(page.address()));
        page.unmap();
        if let Some(anchor) = region.anchor.take() {
            anchor.unmap();
        }
        let path = region.shown.map(|file| {
            file.remove();
            PathText::new(file.path())
        });
        let path = path.flatten();
        match result {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::new(
                path.as_ref().map_or(self.folder.path(), PathText::as_path),
                Cause::Ignored,
            )),
            Err(error) => Err(error),
        }
    }

    fn error(&self, cause: Cause) -> Error {
        Error::new(self.folder.path(), cause)
    }

    pub(crate) fn load(&mut self, code: &Code<'_>) -> Result<(), Error> {
        self.place(code.address, code.size, |region_for, files| {
            let read;
            let bytes = match code.bytes {
                Some(bytes) => bytes,
                None => {
                    read = memory::read(code.address, usize::try_from(code.size).unwrap_or(0));
                    &read
                }
            };
            region_for.add(code, bytes, files);
        })
    }

    pub(crate) fn unload(&mut self, address: u64, size: u64) {
        if let Some(region) = region_at(&mut self.regions, address) {
            region.unload(address, size);
        }
    }

    pub(crate) fn moved(&mut self, from: u64, to: u64, size: u64) -> Result<(), Error> {
        let taken =
            region_at(&mut self.regions, from).and_then(|region| region.take_out(from, size, to));
        let Some(alone) = taken else { return Ok(()) };
        self.place(to, size, |region_for, _| {
            region_for.take_codes(&alone);
            region_for.put_text(to, &memory::read(to, usize::try_from(size).unwrap_or(0)));
        })
    }

    /// In the child of a fork: from now on it has files of its own.
    pub(crate) fn forked(&mut self) {
        self.folder.forked();
        for region in self.regions.values_mut() {
            region.shown = None;
        }
    }

    /// Shows again what Valgrind has forgotten because its memory was unmapped, if nothing else is there.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        for region in self.regions.values_mut() {
            if region.shown.is_some()
                && !window::is_mapped(region.start, region.end)
                && is_anonymous_or_free(region.start, region.end)
                && window::fill(region.start, region.end)
            {
                // All of its code is as it was, also what was unloaded.
                region.trust();
                show(region, &self.files, &self.folder)?;
            }
        }
        Ok(())
    }

    /// Makes `put` add a code to its region, and shows the region; does nothing if it cannot be shown.
    fn place(
        &mut self,
        address: u64,
        size: u64,
        put: impl FnOnce(&mut Region, &mut Files),
    ) -> Result<(), Error> {
        if size == 0 || size > LARGEST || address.checked_add(size + PAGE).is_none() {
            return Ok(());
        }
        let (start, end) = pages(address, size);
        let neighbours = self.neighbours(start, end);
        // Usually, one region has these pages or grows by them. It stays in the table.
        if let Neighbours::One(region) = &neighbours
            && let Some(key) = self.key_with(region, start, end)
            && let Some(region) = self.regions.get_mut(&key)
        {
            region.extend(start, end);
            put(region, &mut self.files);
            return show(region, &self.files, &self.folder);
        }
        let keys = neighbours.keys();
        let Some(mut region_for) = self.region_for(keys, start, end)? else { return Ok(()) };
        put(&mut region_for, &mut self.files);
        self.show_and_insert(region_for)
    }

    /// Gives the region with these pages the key that it has when it also has the pages from `start` to `end`. `None` if any page
    /// is not mapped, or if an added one belongs to an object file.
    fn key_with(&mut self, region: &Range<u64>, start: u64, end: u64) -> Option<u64> {
        let (first, last) = (start.min(region.start), end.max(region.end));
        let is_inside = *region == (first..last);
        if !window::is_mapped(first, last) || !is_inside && self.is_object(start, end) {
            return None;
        }
        let is_renamed = first == region.start || self.regions.rename(&region.start, first)?;
        is_renamed.then_some(first)
    }

    /// Removes from the table, or creates, the region for some pages; `None` if they cannot be shown.
    fn region_for(
        &mut self,
        keys: Range<u64>,
        start: u64,
        end: u64,
    ) -> Result<Option<Region>, Error> {
        if !window::is_mapped(start, end) || self.is_object(start, end) {
            return Ok(None);
        }
        let mut all: Option<Region> = None;
        while let Some(key) = self.regions.first_from(&keys.start).map(|(key, _)| *key)
            && key < keys.end
            && let Some(region) = self.regions.remove(&key)
        {
            all = Some(match all {
                Some(before) => before.joined_with(region),
                None => region,
            });
        }
        let Some(mut region) = all else {
            if self.regions.len() >= MOST {
                return Err(self.error(Cause::TooMany));
            }
            return Ok(Some(Region::new(start, end)));
        };
        region.extend(start, end);
        Ok(Some(region))
    }

    /// The regions that become one with the pages: those that have some of them, or else an adjacent one that has space.
    fn neighbours(&self, start: u64, end: u64) -> Neighbours {
        let below = self.regions.last_below(&start).map(|(_, region)| region);
        let next = self.regions.first_from(&start).map(|(_, region)| region);
        let is_below_in = below.is_some_and(|below| below.end > start);
        let is_next_in = next.is_some_and(|next| next.start < end);
        let one = match (below, next) {
            (Some(below), _) if is_below_in && !is_next_in => below,
            (_, Some(next)) if is_next_in && !is_below_in && end <= next.end => next,
            (Some(below), _) if is_below_in => return Neighbours::Many(below.start..end),
            _ if is_next_in => return Neighbours::Many(start..end),
            (Some(below), _) if below.end == start && self.has_space(below) => below,
            (_, Some(next)) if next.start == end && self.has_space(next) => next,
            _ => return Neighbours::Many(0..0),
        };
        Neighbours::One(one.start..one.end)
    }

    fn has_space(&self, region: &Region) -> bool {
        let more = 1 + self.regions.len() / MANY;
        region.len() < FULL * more && region.end - region.start < LARGE * more as u64
    }

    /// Whether any of the pages belongs to a mapped object file.
    fn is_object(&mut self, start: u64, end: u64) -> bool {
        let mut at = memory::end_of_anonymous(start, end);
        while at < end {
            if !self.known.contains(&at) {
                match memory::kind(at) {
                    Some(Kind::Other(range)) => self.known = range,
                    Some(Kind::Object) | None => return true,
                }
            }
            at = memory::end_of_anonymous(self.known.end, end);
        }
        false
    }

    /// Shows a region, and puts it into the table.
    fn show_and_insert(&mut self, mut region: Region) -> Result<(), Error> {
        if window::is_mapped(region.start, region.end) {
            let result = show(&mut region, &self.files, &self.folder);
            self.regions.insert(region.start, region);
            return result;
        }
        // Pages were unmapped. Valgrind has forgotten everything of the same object file.
        if let Some(anchor) = region.anchor.take() {
            anchor.unmap();
        }
        let mut at = region.start;
        while at < region.end {
            let mut end = at;
            while end < region.end && window::is_mapped(end, end + PAGE) {
                end += PAGE;
            }
            if end > at {
                let mut part = region.part(at, end);
                part.shown = None;
                if part.has_life() {
                    let result = show(&mut part, &self.files, &self.folder);
                    self.regions.insert(part.start, part);
                    result?;
                }
            }
            at = end + PAGE;
        }
        Ok(())
    }
}

/// Whether all pages of the range that are mapped are known to belong to no file.
fn is_anonymous_or_free(start: u64, end: u64) -> bool {
    (start..end).step_by(PAGE as usize).all(|at| {
        let behind = at + PAGE;
        !window::is_mapped(at, behind) || memory::end_of_anonymous(at, behind) == behind
    })
}

/// The region that contains an address.
fn region_at(regions: &mut Map<u64, Region>, address: u64) -> Option<&mut Region> {
    let (_, region) = regions.range_mut(..=address).next_back()?;
    (address < region.end).then_some(region)
}

/// Shows a region, all of whose pages are mapped.
fn show(region: &mut Region, files: &Files, folder: &Folder) -> Result<(), Error> {
    // An incomplete region is not shown.
    let so_far = fallible::so_far();
    so_far.map_err(|_| Error::new(folder.path(), Cause::Memory))?;
    // Callgrind keeps the blocks of an object file by its name. After the memory was unmapped, other blocks
    // may be there: they need another name, or callgrind aborts.
    if let Some(witness) = region.doubt()
        && !witness.is_some_and(guest::valgrind::has_line)
    {
        region.shown = None;
        region.bury();
    }
    let mut shown = region.shown.take();
    let start = region.start;
    let written = region.parts(files, |parts| {
        elf::compose(parts, |(pieces, size)| {
            if let Some(file) = &mut shown
                && let Some(fd) = file.replace((&mut *pieces, size))?
            {
                return Ok(fd);
            }
            let (file, fd) = folder.create(start, (pieces, size))?;
            shown = Some(file);
            Ok(fd)
        })
    });
    region.shown = shown;
    let shown = written.and_then(|fd| {
        let place = (region.start, region.end);
        window::show(fd.as_fd(), elf::TEXT_AT, place, &mut region.anchor)
    });
    let path = || region.shown.as_ref().map_or(folder.path(), |file| file.path());
    shown.map_err(|cause| Error::new(path(), cause))
}
