//! The live code as objects that a loader takes, one an arena.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use code_image::{ObjectFormat, ObjectWriter, Target};
use dumped_code::{LineTable, Room, endian};
use jitdump::Dump;

use super::input::Input;
use super::live::{Live, Piece};
use crate::output::Output;
use crate::{Error, Result, arena, note};

/// What an arena's start is rounded down to.
const PAGE: u64 = 0x1000;

/// What names of files end in, and what disassembles them.
fn ways(format: ObjectFormat) -> (&'static str, &'static str) {
    match format {
        // As images are called.
        ObjectFormat::Elf => ("elf", "objdump -d"),
        format => (format.extension(), "llvm-objdump -d"),
    }
}

/// Writes the objects into `folder`, which is made if need be.
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
        cause: format!("at offset 0xc: {machine} is no ELF machine"),
    })?;
    let target = Target::new(machine, endian(dump.header().endian));
    let pieces: Vec<Piece<'_, '_>> = live.pieces().collect();
    let arenas = arena::arenas(&pieces, |piece| piece.address..piece.end);
    if arenas.is_empty() {
        note::warning(input.told("no code is live then, so no file is written"));
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let mut last = PathBuf::new();
    let (extension, disassemble) = ways(format);
    for &arena in &arenas {
        let start = arena.first().map_or(0, arena_start);
        let name = format!("jit-{}-{start:x}", dump.header().pid);
        let path = folder.join(format!("{name}.{extension}"));
        object(target, format, arena, &name, &path, force)?;
        last = path;
    }
    note::say(format_args!(
        "{}: {} pieces of code in {} files; next: {disassemble} {}",
        input.name().display(),
        pieces.len(),
        arenas.len(),
        last.display()
    ));
    Ok(())
}

/// The address of what is at offset 0x1000 in the file; it is in the file's name.
fn arena_start(first: &Piece<'_, '_>) -> u64 {
    first.address & !(PAGE - 1)
}

/// Writes one object.
fn object(
    target: Target,
    format: ObjectFormat,
    arena: &[Piece<'_, '_>],
    name: &str,
    path: &Path,
    force: bool,
) -> Result<()> {
    let (Some(first), Some(last)) = (arena.first(), arena.last()) else { return Ok(()) };
    let span: Range<u64> = arena_start(first)..last.end;
    let mut output = Output::create(path, force)?;
    let mut writer = ObjectWriter::new(output.file(), target, format, span)
        .map_err(Error::format(path))?
        .named(name);
    let mut room = Room::new(target.machine.into());
    for piece in arena {
        let (load, visible) = (piece.load, piece.address..piece.end);
        room.shown(load, piece.start, visible, LineTable::Source, |code| {
            writer.add(code, load.timestamp)
        })
        .map_err(Error::format(path))?;
    }
    writer.finish().map_err(Error::format(path))?;
    output.finish()
}
