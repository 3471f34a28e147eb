//! The image of a code.

use std::io::Cursor;

use code_image::jitdump::{Converter, LineTable};
use code_image::{ImageWriter, Target};
use jitdump::{Dump, Quirks};

use crate::build_id::BuildId;
use crate::only_code::only_code;

/// An object file with one code: its name, lines, inlined calls and unwind info, and its bytes if the log has them.
///
/// It has one code, so that its build-id depends on nothing else: neither on what else was asked for, nor when, nor on the process.
/// The same code of another process has the same image if it is at the same place in its page.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) id: BuildId,
    /// The address of the code's first byte in the image, which is also its offset in the file.
    pub(crate) address: u64,
    pub(crate) content: Vec<u8>,
}

/// The most bytes of a code.
const MOST: u64 = 4 << 20;

impl Image {
    /// Makes the image of the code that a dump has. `None` if there can be none.
    pub(crate) fn of(dump: &[u8]) -> Option<Self> {
        let parsed = Dump::parse(dump).ok()?;
        let code = only_code(dump)?;
        // Code without bytes is a hole in the file, of a size that the process can choose.
        if code.size == 0 || code.size > MOST {
            return None;
        }
        let machine = u16::try_from(Quirks::none(&parsed).machine).ok()?;
        let target = Target::new(machine, parsed.header().endian);
        let span = code.address..code.address.checked_add(code.size)?;
        let mut content = Cursor::new(Vec::new());
        let mut writer = ImageWriter::new(&mut content, target, span.clone()).ok()?;
        let mut room = Converter::new(machine.into());
        room.convert(&code, code.address, span, LineTable::Source, |code| writer.add(code)).ok()?;
        let finished = writer.finish(|_size| None).ok()?;
        let bias = finished.text.address.wrapping_sub(finished.text.file_offset);
        Some(Self {
            id: BuildId(finished.build_id),
            address: code.address.wrapping_sub(bias),
            content: content.into_inner(),
        })
    }
}
