//! A module's own DWARF.

use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian};
use addr2line::{Context, Frame};

use crate::sections;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Debug information of a WebAssembly binary.
pub(crate) struct Source<'a> {
    context: Context<Reader<'a>>,
    /// Offset in the binary of the code section's content: addresses in DWARF are relative to it.
    code: u32,
}

impl<'a> Source<'a> {
    /// `None` if there is no readable debug info.
    pub(crate) fn of(binary: &'a [u8]) -> Option<Self> {
        let mut code = None;
        let mut debug = Vec::new();
        for section in sections::of(binary) {
            if section.id == sections::CODE {
                code = u32::try_from(section.start).ok();
            } else if section.name.starts_with(b".debug_") {
                debug.push(section);
            }
        }
        if debug.is_empty() {
            return None;
        }
        let find = |name: &str| {
            let found = debug.iter().find(|section| section.name == name.as_bytes());
            EndianSlice::new(found.map_or(&[][..], |section| section.content), LittleEndian)
        };
        let dwarf = Dwarf::load(|id| Ok::<_, addr2line::gimli::Error>(find(id.name()))).ok()?;
        Some(Self { context: Context::from_dwarf(dwarf).ok()?, code: code? })
    }

    /// The frames of the instruction at an offset of the binary, innermost first. The last one is the
    /// function that contains it.
    pub(crate) fn frames(&self, offset: u32) -> Vec<Frame<'_, Reader<'a>>> {
        let mut frames = Vec::new();
        let Some(probe) = offset.checked_sub(self.code) else { return frames };
        // There is no split DWARF in a single binary.
        let Ok(mut found) = self.context.find_frames(u64::from(probe)).skip_all_loads() else {
            return frames;
        };
        while let Ok(Some(frame)) = found.next() {
            frames.push(frame);
        }
        frames
    }
}
