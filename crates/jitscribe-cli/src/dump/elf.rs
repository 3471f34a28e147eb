//! ELF images of the live code, one an arena.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use code_image::{ImageWriter, Target};
use dumped_code::{LineTable, Room, endian};
use jitdump::Dump;

use super::input::Input;
use super::live::{Live, Piece};
use crate::output::Output;
use crate::{Error, Result, arena, note};

/// What an arena's start is rounded down to.
const PAGE: u64 = 0x1000;

/// Writes the images into `folder`, which is made if need be.
pub fn write(
    dump: &Dump<'_>,
    live: &Live<'_>,
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
        note::warning(input.told("no code is live then, so no image is written"));
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let mut last = PathBuf::new();
    for &arena in &arenas {
        let start = arena.first().map_or(0, arena_start);
        let path = folder.join(format!("jit-{}-{start:x}.elf", dump.header().pid));
        image(target, arena, &path, force)?;
        last = path;
    }
    note::say(format_args!(
        "{}: {} pieces of code in {} files; next: objdump -d {}",
        input.name().display(),
        pieces.len(),
        arenas.len(),
        last.display()
    ));
    Ok(())
}

/// The address that an image mirrors at its file offset 0x1000; it is in the file's name.
fn arena_start(first: &Piece<'_, '_>) -> u64 {
    first.address & !(PAGE - 1)
}

/// Writes one image.
fn image(target: Target, arena: &[Piece<'_, '_>], path: &Path, force: bool) -> Result<()> {
    let (Some(first), Some(last)) = (arena.first(), arena.last()) else { return Ok(()) };
    let span: Range<u64> = arena_start(first)..last.end;
    let mut output = Output::create(path, force)?;
    let mut writer = ImageWriter::new(output.file(), target, span).map_err(Error::format(path))?;
    let mut room = Room::new(target.machine.into());
    for piece in arena {
        let visible = piece.address..piece.end;
        room.shown(piece.load, piece.start, visible, LineTable::Source, |code| writer.add(code))
            .map_err(Error::format(path))?;
    }
    // The unwind tables come right above the text: nothing else is in this file's way.
    writer.finish(|_size| None).map_err(Error::format(path))?;
    output.finish()
}
