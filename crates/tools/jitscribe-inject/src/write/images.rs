//! Writes the images of a plan, and the mapping events that bring them into a recording.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use code_image::{Finished, Target};
use code_timeline::AddressSpaceId;
use perf_data::{Attrs, FileIdentity, Mmap, MmapDetail, misc};

use super::branches::TargetNames;
use super::image::{self, ImageOptions};
use super::listed_codes::ListedNames;
use super::remains::{AddedMapping, Content, with_remains};
use super::spelling::Spellings;
use crate::codes::code_table::CodeTable;
use crate::codes::original_places::OriginalPlaces;
use crate::files::{RecordedFiles, image_name, number_of_image, pid_of_image};
use crate::interner::NameId;
use crate::plan::{Mask, Place, Plan, PlannedImage};
use crate::recording::address_space::AddressSpaces;
use crate::recording::free::Free;
use crate::recording::recording_index::RecordingIndex;
use crate::{Error, Result};

/// `PROT_READ | PROT_EXEC`.
const PROTECTION: u32 = 5;
/// `PROT_READ`.
const PROTECTION_OF_TABLES: u32 = 1;
/// `MAP_PRIVATE`.
const MAP_PRIVATE: u32 = 2;
/// A signed 32-bit offset must reach the unwind tables.
const REACH: u64 = 1 << 31;

/// For the number of spellings of its path, a file of the recording is taken to have this many symbols.
const SYMBOLS_OF_LIBRARY: usize = 1 << 16;

/// A file that is mapped at several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MappedFile {
    /// The image with this index in [`Images::written`].
    Image(usize),
    /// A file of the recording in this address space.
    Recorded(AddressSpaceId, NameId),
}

/// An image that was written.
#[derive(Debug)]
pub struct Image {
    /// Its path.
    pub path: PathBuf,
    /// Its properties.
    pub finished: Finished,
    /// Number of codes, or parts of codes, in it.
    codes: usize,
}

/// All images, and the events that map them.
#[derive(Debug, Default)]
pub struct Images {
    /// In the order of the plan.
    pub written: Vec<Image>,
    /// The paths in these events, and the files that they lead to.
    pub paths: BTreeMap<Vec<u8>, MappedFile>,
    /// Mapping events with their places, in order.
    pub events: Vec<(Place, Vec<u8>)>,
    /// The names of the listed codes in the images.
    pub names: ListedNames,
    /// The functions' places in the sources that scripts were compiled from.
    pub originals: OriginalPlaces,
}

/// The target machine of an address space.
pub type TargetOf<'t> = dyn Fn(AddressSpaceId) -> Target + 't;

impl Images {
    /// Writes all images of `plan`.
    #[expect(clippy::too_many_arguments, reason = "the results of all steps before it")]
    pub fn write(
        plan: &Plan,
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        table: &CodeTable<'_>,
        attrs: &Attrs,
        target_of: &TargetOf<'_>,
        options: ImageOptions<'_>,
        files: &RecordedFiles<'_>,
    ) -> Result<Self> {
        let names = TargetNames::new(index, spaces, files);
        let mut images = Self::default();
        let mut added = Vec::new();
        // Readers distinguish images by name, without the folder.
        let mut arenas_of_pids = behind_earlier_images(index);
        // For the current address space; arenas of one address space are adjacent in the plan, in ascending order.
        let mut free: Option<(AddressSpaceId, Free)> = None;
        // Where the tables of its earlier arenas end. They stay mapped: those of another image at the same address would hide them.
        let mut tables_end = 0;
        for arena in &plan.arenas {
            let Some(folder) = options.folder else { continue };
            if index.stack_copies && free.as_ref().is_none_or(|(space, _)| *space != arena.space) {
                // Free in all of its arenas, with space for their tables.
                let spans = plan.arenas_of(arena.space).iter().map(|arena| arena.span.clone());
                free = Some((arena.space, spaces.free(arena.space, spans)));
                tables_end = 0;
            }
            let pid = index.processes.pid(arena.space);
            let arenas_of_pid: &mut usize = arenas_of_pids.entry(pid).or_default();
            let arena_of_pid = *arenas_of_pid;
            *arenas_of_pid += 1;
            // Images of one time need tables at different addresses.
            let is_layered = arena.images_at(0).len() > 1;
            let mut taken = tables_end;
            for (part, image) in arena.images.iter().enumerate() {
                let is_only = arena.images.len() == 1 || is_layered && part == 0;
                let part = (!is_only).then_some(part);
                let name = image_name(pid, arena_of_pid, part);
                let path = folder.path().join(&name);
                let place = |from: u64, size: u64| {
                    let place = free.as_ref()?.1.first(from.max(taken), size)?;
                    (place + size - arena.span.start < REACH).then_some(place)
                };
                let target = target_of(arena.space);
                let frame = options.frames.get(&arena.space);
                let options = ImageOptions { frame, ..options };
                let finished = {
                    let names = (arena.space, &names);
                    let file = (folder, name.as_ref());
                    image::write(
                        file,
                        image,
                        table,
                        target,
                        options,
                        &mut images.names,
                        names,
                        place,
                    )?
                };
                if let Some(tables) = &finished.eh_frame {
                    let end = tables.address + tables.len;
                    tables_end = tables_end.max(end);
                    taken = if is_layered { end } else { taken };
                }
                let number = images.written.len();
                add_mappings(number, arena.space, image, &finished, index.stack_copies, &mut added);
                images.written.push(Image { path, finished, codes: image.shown.len() });
            }
        }
        for &Mask { space, ref range, place } in &plan.masks {
            let map = spaces.mapping(index, space, range.start, place.time());
            let content = Content::Recorded(map);
            added.push(AddedMapping { space, range: range.clone(), place, content });
        }
        // perf's libunwind computes a base address for each path.
        let mut spellings = if index.stack_copies { Spellings::single() } else { Spellings::new() };
        for mapping in with_remains(added, index, plan) {
            let event = images.event(&mapping, index, attrs, files, &mut spellings)?;
            images.events.extend(event.map(|event| (mapping.place, event)));
        }
        Ok(images)
    }

    /// The event of a mapping; `None` if that of recorded memory cannot be encoded.
    fn event(
        &mut self,
        mapping: &AddedMapping,
        index: &RecordingIndex,
        attrs: &Attrs,
        files: &RecordedFiles<'_>,
        spellings: &mut Spellings<MappedFile>,
    ) -> Result<Option<Vec<u8>>> {
        let AddedMapping { space, ref range, place, content } = *mapping;
        let pid = index.processes.pid(space);
        let (number, moved_by, protection) = match content {
            Content::Image { number, moved_by } => (number, moved_by, PROTECTION),
            Content::Tables { number } => (number, 0, PROTECTION_OF_TABLES),
            Content::Recorded(map) => {
                let map = map.and_then(|map| index.maps.get(map));
                let offset = |start: u64| map.map_or(0, |map| start.wrapping_sub(map.above_offset));
                let file =
                    map.filter(|map| !map.anonymous).and_then(|map| files.functions(map.name));
                let range = match file {
                    Some(file) => &file.filled(range, offset(range.start)),
                    None => range,
                };
                let name = match map {
                    Some(map) if !map.anonymous => {
                        let file = MappedFile::Recorded(space, map.name);
                        let name = index.name(map);
                        let mut path =
                            |start| spellings.path(file, name, SYMBOLS_OF_LIBRARY, start);
                        // The recording's own mapping comes first.
                        path(map.range.start);
                        let path = path(range.start);
                        self.paths.insert(path.clone(), file);
                        path
                    }
                    Some(map) => index.name(map).to_vec(),
                    None => b"//anon".to_vec(),
                };
                let mut mmap = mapping_of(pid, range, offset(range.start), PROTECTION, &name);
                // perf would take the same path with another inode for another file.
                if let Some((detail, file)) = mmap.detail.as_mut().zip(map.and_then(|map| map.file))
                {
                    detail.file = file;
                }
                return Ok(encode(&mmap, attrs, place));
            }
        };
        let Some(Image { path, finished, codes }) = self.written.get(number) else {
            return Ok(None);
        };
        // Negative below the first page.
        let bias = finished.text.address.wrapping_sub(finished.text.file_offset);
        let page_offset = (range.start + moved_by).wrapping_sub(bias);
        let file = MappedFile::Image(number);
        let mut name = path.as_os_str().as_bytes().to_vec();
        if matches!(content, Content::Image { .. }) {
            name = spellings.path(file, &name, *codes, range.start);
        }
        let mmap = mapping_of(pid, range, page_offset, protection, &name);
        let event = encode(&mmap, attrs, place);
        let event = event.ok_or_else(|| Error::PathTooLong { path: path.clone() })?;
        self.paths.insert(name, file);
        Ok(Some(event))
    }
}

/// No recording has so many images.
const LARGEST_NUMBER: usize = 1 << 31;

/// The first number for an image of each process of which the recording has images already.
fn behind_earlier_images(index: &RecordingIndex) -> HashMap<u32, usize> {
    let mut first: HashMap<u32, usize> = HashMap::new();
    for name in index.names.iter() {
        let number = number_of_image(name).filter(|number| *number < LARGEST_NUMBER);
        if let Some((pid, number)) = pid_of_image(name).zip(number) {
            let behind = first.entry(pid).or_default();
            *behind = (number + 1).max(*behind);
        }
    }
    first
}

/// Adds the mappings of the image with this number.
fn add_mappings(
    number: usize,
    space: AddressSpaceId,
    image: &PlannedImage,
    finished: &Finished,
    stack_copies: bool,
    added: &mut Vec<AddedMapping>,
) {
    for mapping in &image.mappings {
        let content = Content::Image { number, moved_by: mapping.moved_by };
        let (range, place) = (mapping.range.clone(), mapping.place);
        added.push(AddedMapping { space, range, place, content });
    }
    let places = image.mappings.iter().map(|mapping| mapping.place);
    let first_place = places.min_by_key(|place| place.time());
    if let (Some(tables), Some(place), true) = (&finished.eh_frame, first_place, stack_copies) {
        let range = tables.address..tables.address + tables.len;
        added.push(AddedMapping { space, range, place, content: Content::Tables { number } });
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
