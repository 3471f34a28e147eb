//! The regions, and their object files.

use std::ops::Range;
use std::os::fd::AsFd;

use fallible::{Map, PathText, Vec};

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
        // Usually, a region already has these pages, and they are all still mapped. It stays in the table.
        if let Some(region) = region_at(&mut self.regions, start)
            && end <= region.end
            && window::is_mapped(region.start, region.end)
        {
            put(region, &mut self.files);
            return show(region, &self.files, &self.folder);
        }
        let Some(mut region_for) = self.region_for(start, end)? else { return Ok(()) };
        put(&mut region_for, &mut self.files);
        self.show_and_insert(region_for)
    }

    /// Removes from the table, or creates, the region for some pages; `None` if they cannot be shown.
    fn region_for(&mut self, start: u64, end: u64) -> Result<Option<Region>, Error> {
        if !window::is_mapped(start, end) {
            return Ok(None);
        }
        let mut keys: Vec<u64> = self.regions.range(start..end).map(|(&key, _)| key).collect();
        let below = self.regions.last_below(&start);
        if let Some((&key, region)) = below
            && (region.end > start
                || region.end == start && keys.is_empty() && self.has_space(region))
        {
            keys.insert(0, key);
        }
        if keys.is_empty()
            && let Some((&key, region)) = self.regions.first_from(&end)
            && key == end
            && self.has_space(region)
        {
            keys.push(key);
        }
        let is_inside = |region: &Region| region.start <= start && end <= region.end;
        let is_inside = matches!(keys[..], [key] if self.regions.get(&key).is_some_and(is_inside));
        if !is_inside && self.is_object(start, end) {
            return Ok(None);
        }
        if keys.is_empty() && self.regions.len() >= MOST {
            return Err(self.error(Cause::TooMany));
        }
        // The largest one is kept, and takes over the others.
        let mut found: Vec<Region> =
            keys.iter().filter_map(|key| self.regions.remove(key)).collect();
        let largest = (0..found.len()).max_by_key(|at| found[*at].len());
        let mut region_for = match largest {
            Some(at) => found.swap_remove(at),
            None => Region::new(start, end),
        };
        region_for.extend(start, end);
        for other in &mut found {
            region_for.extend(other.start, other.end);
            region_for.absorb(other);
            if let Some(anchor) = other.anchor.take() {
                // What Valgrind read from it is about to be replaced.
                anchor.unmap();
            }
        }
        Ok(Some(region_for))
    }

    fn has_space(&self, region: &Region) -> bool {
        let more = 1 + self.regions.len() / MANY;
        region.len() < FULL * more && region.end - region.start < LARGE * more as u64
    }

    /// Whether any of the pages belongs to a mapped object file.
    fn is_object(&mut self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            if !self.known.contains(&at) {
                match memory::kind(at) {
                    Some(Kind::Other(range)) => self.known = range,
                    Some(Kind::Object) | None => return true,
                }
            }
            at = self.known.end;
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
        elf::compose(parts, |pieces| {
            if let Some(file) = &mut shown
                && let Some(fd) = file.replace(pieces)?
            {
                return Ok(fd);
            }
            let (file, fd) = folder.create(start, pieces)?;
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
