//! Writes the images of a plan, and the mapping events that bring them into a recording.

use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use code_image::{Finished, Target};
use code_timeline::AddressSpaceId;
use perf_data::{Attrs, FileIdentity, Mmap, MmapDetail, misc};

use super::address_space::AddressSpaces;
use super::code_table::CodeTable;
use super::free::Free;
use super::image::{self, ImageOptions};
use super::plan::{Arena, Mask, Place, Plan, PlannedImage};
use super::recording_index::RecordingIndex;
use super::top::Top;
use crate::{Error, Result};

/// `PROT_READ | PROT_EXEC`.
const PROTECTION: u32 = 5;
/// `PROT_READ`.
const PROTECTION_OF_TABLES: u32 = 1;
/// `MAP_PRIVATE`.
const MAP_PRIVATE: u32 = 2;
/// A signed 32-bit offset must reach the unwind tables.
const REACH: u64 = 1 << 31;

/// An image that was written.
#[derive(Debug)]
pub struct Image {
    /// Its path.
    pub path: PathBuf,
    /// Its properties.
    pub finished: Finished,
}

/// All images, and the events that map them.
#[derive(Debug, Default)]
pub struct Images {
    /// In the order of the plan.
    pub written: Vec<Image>,
    /// Mapping events with their places, in order.
    pub events: Vec<(Place, Vec<u8>)>,
    /// The functions with the most samples.
    pub top: Top,
}

/// The target machine of an address space.
pub type TargetOf<'t> = dyn Fn(AddressSpaceId) -> Target + 't;

impl Images {
    /// Writes all images of `plan`.
    pub fn write(
        plan: &Plan,
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        table: &CodeTable<'_>,
        attrs: &Attrs,
        target_of: &TargetOf<'_>,
        options: ImageOptions<'_>,
    ) -> Result<Self> {
        let mut images = Self::default();
        let mut arenas_of_pids: HashMap<u32, usize> = HashMap::new();
        // For the current address space; arenas of one address space are adjacent in the plan.
        let mut free: Option<(AddressSpaceId, Free)> = None;
        for arena in &plan.arenas {
            if index.stack_copies && free.as_ref().is_none_or(|(space, _)| *space != arena.space) {
                // Free in all of its arenas, with space for their tables.
                let spans = plan.arenas_of(arena.space).iter().map(|arena| arena.span.clone());
                free = Some((arena.space, spaces.free(arena.space, spans)));
            }
            let pid = index.processes.pid(arena.space);
            let arenas_of_pid: &mut usize = arenas_of_pids.entry(pid).or_default();
            let arena_of_pid = *arenas_of_pid;
            *arenas_of_pid += 1;
            for (epoch, image) in arena.images.iter().enumerate() {
                let name = match arena.images.len() {
                    1 => format!("jit-{pid}-{arena_of_pid}.elf"),
                    _ => format!("jit-{pid}-{arena_of_pid}-{epoch}.elf"),
                };
                let path = options.folder.join(name);
                let place = |from: u64, size: u64| {
                    let place = free.as_ref()?.1.first(from, size)?;
                    (place + size - arena.span.start < REACH).then_some(place)
                };
                let target = target_of(arena.space);
                let top = &mut images.top;
                let finished = image::write(&path, image, table, target, options, top, place)?;
                images.show(index, attrs, arena, image, &path, &finished)?;
                images.written.push(Image { path, finished });
            }
        }
        for mask in &plan.masks {
            images.hide(index, spaces, attrs, mask);
        }
        // The sort is stable, so that mappings at the same place keep their order.
        images.events.sort_by_key(|(place, _)| *place);
        Ok(images)
    }

    /// Creates the event that maps the previous mapping over an image.
    fn hide(&mut self, index: &RecordingIndex, spaces: &AddressSpaces, attrs: &Attrs, mask: &Mask) {
        let Mask { space, ref range, place } = *mask;
        let pid = index.processes.pid(space);
        let map = spaces.mapping(index, space, range.start, place.time());
        let page_offset = map.map_or(0, |map| range.start.wrapping_sub(map.above_offset));
        let name = map.map_or(&b"//anon"[..], |map| index.name(map));
        let mmap = mapping_of(pid, range, page_offset, PROTECTION, name);
        if let Some(event) = encode(&mmap, attrs, place) {
            self.events.push((place, event));
        }
    }

    /// Creates the events that map `image`.
    fn show(
        &mut self,
        index: &RecordingIndex,
        attrs: &Attrs,
        arena: &Arena,
        image: &PlannedImage,
        path: &Path,
        finished: &Finished,
    ) -> Result<()> {
        let pid = index.processes.pid(arena.space);
        // Negative below the first page.
        let bias = finished.text.address.wrapping_sub(finished.text.file_offset);
        let mut map = |range: Range<u64>, in_image: u64, place: Place, protection| {
            let name = path.as_os_str().as_bytes();
            let mmap = mapping_of(pid, &range, in_image.wrapping_sub(bias), protection, name);
            let too_long = || Error::PathTooLong { path: path.to_owned() };
            let event = encode(&mmap, attrs, place).ok_or_else(too_long)?;
            self.events.push((place, event));
            Ok(())
        };
        for mapping in &image.mappings {
            let range = mapping.range.clone();
            map(range.clone(), range.start + mapping.moved_by, mapping.place, PROTECTION)?;
        }
        let places = image.mappings.iter().map(|mapping| mapping.place);
        let first_place = places.min_by_key(|place| place.time());
        if let (Some(tables), Some(place), true) =
            (&finished.eh_frame, first_place, index.stack_copies)
        {
            let range = tables.address..tables.address + tables.len;
            map(range, tables.address, place, PROTECTION_OF_TABLES)?;
        }
        Ok(())
    }
}

/// A private mapping without an inode.
fn mapping_of<'n>(
    pid: u32,
    range: &Range<u64>,
    page_offset: u64,
    protection: u32,
    filename: &'n [u8],
) -> Mmap<'n> {
    let file = FileIdentity::Inode { major: 0, minor: 0, inode: 0, generation: 0 };
    Mmap {
        misc: misc::USER,
        pid,
        tid: pid,
        address: range.start,
        len: range.end - range.start,
        page_offset,
        detail: Some(MmapDetail { protection, flags: MAP_PRIVATE, file }),
        filename,
    }
}

/// Encodes the event of a mapping at `place`; `None` if the name is too long.
fn encode(mmap: &Mmap<'_>, attrs: &Attrs, place: Place) -> Option<Vec<u8>> {
    let trailer = attrs.trailer(mmap.pid, mmap.tid, place.time_of_event());
    mmap.encode(attrs.endian(), &trailer)
}
