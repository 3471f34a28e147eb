//! Conversion of the live code to loadable objects, one per arena.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_image::jitdump::{Converter, LineTable};
use code_image::{ObjectFormat, ObjectWriter, Target};
use jitdump::Dump;

use super::input::Input;
use super::live::{Live, Piece};
use crate::{Error, Result, note, text};
use jitscribe_inject::output::{Folder, Output};
use jitscribe_inject::output_limits::split_into_arenas;

/// The start of an arena is rounded down to a multiple of this.
const PAGE: u64 = 0x1000;

/// The file extension of a format, and the command that disassembles such files.
fn ways(format: ObjectFormat) -> (&'static str, &'static str) {
    match format {
        // The extension that images have.
        ObjectFormat::Elf => ("elf", "objdump -d"),
        format => (format.extension(), "llvm-objdump -d"),
    }
}

/// Writes the objects into `folder`, which is created if it does not exist.
pub fn write(
    dump: &Dump<'_>,
    live: &Live<'_>,
    format: ObjectFormat,
    folder: &Path,
    force: bool,
    input: &Input,
) -> Result<()> {
    let machine = dump.codes().quirks().machine;
    let machine = u16::try_from(machine).map_err(|_| Error::Format {
        path: input.name().to_owned(),
        cause: format!("at offset 0xc: {machine} is not an ELF machine"),
    })?;
    let target = Target::new(machine, dump.header().endian);
    let pieces: Vec<Piece<'_, '_>> = live.pieces().collect();
    let arenas = split_into_arenas(&pieces, |piece| piece.address..piece.end);
    if arenas.is_empty() {
        note::warning(input.message("no code is live at that time, so no file is written"));
        return Ok(());
    }
    let folder = Arc::new(Folder::create(folder)?);
    let mut last = PathBuf::new();
    let (extension, disassemble) = ways(format);
    for &arena in &arenas {
        let start = arena.first().map_or(0, arena_start);
        let name = format!("jit-{}-{start:x}", dump.header().pid);
        let output = Output::create_in(&folder, format!("{name}.{extension}").as_ref(), force)?;
        last = output.path().to_owned();
        object(target, format, arena, &name, output)?;
    }
    note::say(format_args!(
        "{}: {} pieces of code in {} files; next: {disassemble} {}",
        text::path(input.name()),
        pieces.len(),
        arenas.len(),
        text::path(&last)
    ));
    Ok(())
}

/// The address of the byte at offset 0x1000 in the file. The file name contains this address.
fn arena_start(first: &Piece<'_, '_>) -> u64 {
    first.address & !(PAGE - 1)
}

/// Writes one object.
fn object(
    target: Target,
    format: ObjectFormat,
    arena: &[Piece<'_, '_>],
    name: &str,
    mut output: Output,
) -> Result<()> {
    let (Some(first), Some(last)) = (arena.first(), arena.last()) else { return Ok(()) };
    let span: Range<u64> = arena_start(first)..last.end;
    let path = output.path().to_owned();
    let mut writer = ObjectWriter::new(output.file(), target, format, span)
        .map_err(Error::format(&path))?
        .named(name);
    let mut room = Converter::new(target.machine.into());
    for piece in arena {
        let (load, visible) = (piece.load, piece.address..piece.end);
        room.convert(load, piece.start, visible, LineTable::Source, |code| {
            writer.add(code, load.timestamp)
        })
        .map_err(Error::format(&path))?;
    }
    writer.finish().map_err(Error::format(&path))?;
    Ok(output.finish()?)
}
