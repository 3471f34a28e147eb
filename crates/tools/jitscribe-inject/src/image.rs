//! Writes one image; several threads prepare its parts.

use std::collections::HashMap;
use std::path::Path;

use code_image::jitdump::{Converter, LineTable};
use code_image::{Finished, ImageWriter, Part, Target, VisibleCode};
use code_timeline::{AddressSpaceId, CodeId};
use jit_code::Code;

use super::code_table::{CodeReader, CodeTable};
use super::parallel::ordered_map;
use super::php::InterpreterFrame;
use super::plan::{ImageCode, PlannedImage};
use super::top::{CodeDescription, Hits, Top};
use crate::output::Output;
use crate::{Error, Result};

/// How images are written.
#[derive(Clone, Copy)]
pub struct ImageOptions<'a> {
    /// Their folder, which exists.
    pub folder: &'a Path,
    /// Whether to replace existing images.
    pub replace: bool,
    /// The line table to use.
    pub lines: LineTable,
    /// The samples in each code: what is known of codes with samples is kept.
    pub hits: &'a Hits,
    /// Whether the recording has copies of stacks, which are unwound later.
    pub stack_copies: bool,
    /// The frames in which compiled code runs that has no unwind info.
    pub interpreters: &'a HashMap<AddressSpaceId, InterpreterFrame>,
    /// The one of the image's address space.
    pub interpreter: Option<&'a InterpreterFrame>,
}

/// Number of codes that a thread processes at a time: a few of an image's parts, and at least as much of a dump as is
/// read at a time.
const RUN: usize = 2048;

/// Writes `image` to the file `path`. `place` gets the end of its text and the size of its unwind tables, and returns
/// the address for these. `top` gets the codes with samples, or on the stacks of samples.
pub fn write(
    path: &Path,
    image: &PlannedImage,
    table: &CodeTable<'_>,
    target: Target,
    options: ImageOptions<'_>,
    top: &mut Top,
    place: impl Fn(u64, u64) -> Option<u64>,
) -> Result<Finished> {
    let failed = |error: code_image::Error| match error {
        code_image::Error::Io(source) => Error::File { path: path.to_owned(), source },
        other => Error::format(path)(other),
    };
    let mut output = Output::create(path, options.replace)?;
    let mut writer = ImageWriter::new(output.file(), target, image.span.clone()).map_err(failed)?;
    writer.expect(image.shown.len());
    if options.stack_copies {
        writer.always_write_unwind_tables();
    }
    let empty = writer.part();
    let worker = || {
        let mut maker = PartsBuilder {
            empty: &empty,
            target,
            options,
            table,
            reader: table.reader(),
            failed: &failed,
        };
        move |run: &[ImageCode], made: &mut ImageParts| maker.make(run, made)
    };
    ordered_map(image.shown.chunks(RUN), worker, |made: &mut ImageParts| {
        for (code, description) in made.seen.drain(..) {
            top.add(code, description, options.hits);
        }
        made.parts.iter_mut().try_for_each(|part| writer.append(part)).map_err(failed)
    })?;
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
    /// The codes with samples, or on the stacks of samples.
    seen: Vec<(CodeId, CodeDescription)>,
}

/// Creates parts of an image.
struct PartsBuilder<'a, F> {
    empty: &'a Part,
    target: Target,
    options: ImageOptions<'a>,
    table: &'a CodeTable<'a>,
    reader: CodeReader<'a>,
    failed: &'a F,
}

impl<F: Fn(code_image::Error) -> Error> PartsBuilder<'_, F> {
    fn make(&mut self, run: &[ImageCode], made: &mut ImageParts) -> Result<()> {
        let mut at = 0;
        for shown in run {
            at += usize::from(made.parts.get(at).is_some_and(Part::is_full));
            if at == made.parts.len() {
                made.parts.push(self.empty.clone());
            }
            self.add(shown, &mut made.parts[at], &mut made.seen)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        shown: &ImageCode,
        part: &mut Part,
        seen: &mut Vec<(CodeId, CodeDescription)>,
    ) -> Result<()> {
        let code = self.table.history.code(shown.code);
        let start = code.address + shown.moved_by;
        let visible = shown.visible.clone();
        let mut add = |shown_code: &VisibleCode<'_>| match self.options.interpreter {
            Some(frame) => frame.describe(shown_code, |shown| part.add(shown)),
            None => part.add(shown_code),
        };
        let loaded = self.reader.load(code)?;
        let captured = self.table.captured_bytes.get(&shown.code).map(Vec::as_slice);
        if self.options.hits.is_seen(shown.code) {
            let description = match (&loaded, self.table.name_without_dump(shown.code)) {
                (Some(load), _) => Some(CodeDescription::of_load(load)),
                (None, Some(name)) => Some(CodeDescription::of_name(name, captured.is_some())),
                (None, None) => None,
            };
            seen.extend(description.map(|description| (shown.code, description)));
        }
        match (loaded, self.table.name_without_dump(shown.code)) {
            (Some(load), _) => {
                let mut room = Converter::new(self.target.machine.into());
                room.convert(&load, start, visible, self.options.lines, add)
            }
            (None, Some(name)) => {
                let mut code = Code::at(start, code.size).named_bytes(name);
                code.bytes = captured;
                add(&VisibleCode::whole(code).visible(visible))
            }
            // The file has changed since.
            (None, None) => Ok(()),
        }
        .map_err(self.failed)
    }
}
