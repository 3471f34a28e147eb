//! Writes one image; several threads prepare its parts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::sync::Arc;

use code_image::jitdump::{Converter, LineTable};
use code_image::{Finished, ImageWriter, Part, Target, VisibleCode};
use code_timeline::{AddressSpaceId, CodeId, ranges};
use jit_code::{Code, Line};
use jitdump::CodeLoad;
use rustc_hash::FxBuildHasher;

use super::branches::{self, MOST_TARGETS, TargetNames};
use super::listed_codes::{ListedCodes, ListedNames};
use super::output::{Folder, Output};
use crate::attribution::hits::Hits;
use crate::codes::code_table::{CodeReader, CodeTable};
use crate::codes::runtime_frames::RuntimeFrame;
use crate::codes::source_lines::{CachedResolver, SourceResolver};
use crate::parallel::ordered_map;
use crate::plan::{ImageCode, PlannedImage};
use crate::summary::jitted_function::place_in_symbol;
use crate::{Error, Result};

/// How images are written.
#[derive(Clone, Copy)]
pub struct ImageOptions<'a> {
    /// Their folder; `None` if there are no images.
    pub folder: Option<&'a Arc<Folder>>,
    /// Whether to replace existing images.
    pub replace: bool,
    /// The line table to use.
    pub lines: LineTable,
    /// Where the sources are.
    pub sources: &'a SourceResolver<'a>,
    /// The samples in each code: the sources of sampled ones are kept.
    pub hits: &'a Hits,
    /// The codes whose names are kept.
    pub list: &'a ListedCodes,
    /// Whether the recording has copies of stacks, which are unwound later.
    pub stack_copies: bool,
    /// The frames of compiled code that has no unwind info.
    pub frames: &'a HashMap<AddressSpaceId, RuntimeFrame>,
    /// That of the image's address space.
    pub frame: Option<&'a RuntimeFrame>,
}

/// Number of codes that a thread processes at a time: a few of an image's parts, and at least as much of a dump as is
/// read at a time.
const RUN: usize = 2048;

/// Writes `image` to the file `name` in `folder`. `place` gets the end of its text and the size of its unwind tables, and returns
/// the address for these. `listed` gets the names of the codes that are in the list.
#[expect(
    clippy::too_many_arguments,
    reason = "what to write, from which tables, and two callbacks"
)]
pub fn write(
    (folder, name): (&Arc<Folder>, &OsStr),
    image: &PlannedImage,
    table: &CodeTable<'_>,
    target: Target,
    options: ImageOptions<'_>,
    listed: &mut ListedNames,
    (space, names): (AddressSpaceId, &TargetNames<'_>),
    place: impl Fn(u64, u64) -> Option<u64>,
) -> Result<Finished> {
    let failed = |error: code_image::Error| match error {
        code_image::Error::Io(source) => Error::File { path: folder.path().join(name), source },
        other => Error::format(folder.path().join(name))(other),
    };
    let mut output = Output::create_in(folder, name, options.replace)?;
    let mut writer = ImageWriter::new(output.file(), target, image.span.clone()).map_err(failed)?;
    writer.expect(image.shown.len());
    if options.stack_copies {
        writer.always_write_unwind_tables();
    }
    let empty = writer.part();
    let mapped = names.mapped(space);
    let worker = || {
        let mut maker = PartsBuilder {
            empty: &empty,
            target,
            options,
            table,
            reader: table.reader(),
            sources: options.sources.cached(),
            failed: &failed,
            image,
            mapped: &mapped,
        };
        move |run: &[ImageCode], made: &mut ImageParts| maker.make(run, made)
    };
    let mut targets = BTreeSet::new();
    ordered_map(image.shown.chunks(RUN), worker, |made: &mut ImageParts| {
        let left = MOST_TARGETS.saturating_sub(targets.len());
        // In the order of their addresses, so that the same input gives the same image.
        let mut sorted: Vec<(u64, u64)> = made.targets.drain().collect();
        sorted.sort_unstable();
        targets.extend(sorted.into_iter().take(left));
        for ListedName { code, name, tier } in made.listed.drain(..) {
            listed.add(options.list, code, &name, tier.as_deref());
        }
        made.parts.iter_mut().try_for_each(|part| writer.append(part)).map_err(failed)
    })?;
    let addresses = targets.iter().map(|&(_, address)| address).collect();
    let known = names.names(space, &addresses);
    for (shown, address) in targets {
        match known.get(&address) {
            Some(name) => writer.name_branch_target(shown, name),
            None => writer.name_branch_target(shown, format!("{address:#x}").as_bytes()),
        }
    }
    let above = image.span.end;
    let finished = writer.finish(|size| place(above, size)).map_err(failed)?;
    output.finish()?;
    Ok(finished)
}

/// The result of a thread for some codes.
#[derive(Default)]
struct ImageParts {
    /// The parts of the image. Unused ones are empty.
    parts: Vec<Part>,
    /// The codes in the list.
    listed: Vec<ListedName>,
    /// The targets of branches out of the image: as a disassembler computes them, and in the process.
    targets: HashSet<(u64, u64), FxBuildHasher>,
}

/// The name of a code in the list, and its tier if the dump tells it.
struct ListedName {
    code: CodeId,
    name: Vec<u8>,
    tier: Option<Vec<u8>>,
}

/// Creates parts of an image.
struct PartsBuilder<'a, F> {
    empty: &'a Part,
    target: Target,
    options: ImageOptions<'a>,
    table: &'a CodeTable<'a>,
    reader: CodeReader<'a>,
    sources: CachedResolver<'a>,
    failed: &'a F,
    image: &'a PlannedImage,
    /// Where anything was ever mapped.
    mapped: &'a [Range<u64>],
}

impl<F: Fn(code_image::Error) -> Error> PartsBuilder<'_, F> {
    fn make(&mut self, run: &[ImageCode], made: &mut ImageParts) -> Result<()> {
        let mut at = 0;
        for shown in run {
            at += usize::from(made.parts.get(at).is_some_and(Part::is_full));
            if at == made.parts.len() {
                made.parts.push(self.empty.clone());
            }
            self.add(shown, &mut made.parts[at], &mut made.listed, &mut made.targets)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        shown: &ImageCode,
        part: &mut Part,
        listed: &mut Vec<ListedName>,
        targets: &mut HashSet<(u64, u64), FxBuildHasher>,
    ) -> Result<()> {
        let code = self.table.history.code(shown.code);
        let start = code.address + shown.moved_by;
        let visible = shown.visible.clone();
        let mut add = |shown_code: &VisibleCode<'_>| match self.options.frame {
            Some(frame) => frame.describe(shown_code, |shown| part.add(shown)),
            None => part.add(shown_code),
        };
        let mut loaded = self.reader.load(code)?;
        let captured = self.table.captured_bytes.get(&shown.code).map(Vec::as_slice);
        if let (Some(load), Some(bytes)) = (&mut loaded, captured) {
            load.bytes = bytes;
        }
        if self.options.list.has(shown.code) {
            let known = match &loaded {
                Some(load) => Some((load.name, load.tier())),
                None => self.table.name_without_dump(shown.code).map(|name| (name, None)),
            };
            listed.extend(known.map(|(name, tier)| ListedName {
                code: shown.code,
                name: name.to_vec(),
                tier: tier.map(<[u8]>::to_vec),
            }));
        }
        self.sources.marks(self.options.hits.is_seen(shown.code));
        match (loaded, self.table.name_without_dump(shown.code)) {
            (Some(load), _) => {
                define(&load, &self.sources);
                let branches = branches::targets(self.target.machine, load.bytes, start);
                for address in branches {
                    let target = address.wrapping_sub(shown.moved_by);
                    // What only looks like a branch leads to nothing, mostly.
                    let place = target..target.saturating_add(1);
                    if !ranges::overlapping(self.mapped, &place).is_empty()
                        && !self.image.shows(address)
                    {
                        targets.insert((address, target));
                    }
                }
                let (table, sources) = (self.options.lines, &self.sources);
                let whole = sources.whole(load.name, Some(&load));
                let place = |position| sources.place(position);
                let mut room = Converter::new(self.target.machine.into());
                room.convert_with(&load, start, visible, table, whole, place, add)
            }
            (None, Some(name)) => {
                let whole = self.sources.whole(name, None);
                let line = whole.map(|whole| Line::new_bytes(0, whole.file, whole.line));
                let mut code = Code::at(start, code.size).named_bytes(name).lines(line.as_slice());
                code.bytes = captured;
                add(&VisibleCode::whole(code).visible(visible))
            }
            // The file has changed since.
            (None, None) => Ok(()),
        }
        .map_err(self.failed)
    }
}

/// Finds the places of a code's function, and of those inlined into it, in the sources that their scripts were compiled from.
fn define(load: &CodeLoad<'_>, sources: &CachedResolver<'_>) {
    if let Some((file, line, column)) = place_in_symbol(load.name) {
        sources.define(&file, line, column);
    }
    let Some(positions) = load.source_positions().filter(|it| !it.is_empty()) else { return };
    let strings = positions.strings();
    let inlined = (0..).map_while(|number| positions.position(number));
    for position in inlined.filter(|position| position.caller.is_some()) {
        let file = position.file.and_then(|number| strings.get(number as usize));
        if let Some(file) = file.filter(|_| position.function_line > 0) {
            sources.define(file, position.function_line, position.function_column);
        }
    }
}
