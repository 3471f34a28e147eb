//! The DWARF of a binary's own.

use std::ops::Range;

use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian};
use addr2line::{Context, Frame};

use crate::sections;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Debug information of a WebAssembly binary: that of the module that it is, or of each module in a component.
pub(crate) struct Source<'a> {
    modules: Vec<ModuleSource<'a>>,
}

/// Debug information of one module.
struct ModuleSource<'a> {
    /// Where it is in the binary.
    range: Range<usize>,
    /// Offset in the binary of the code section's content: addresses in DWARF are relative to it.
    code: usize,
    context: Context<Reader<'a>>,
}

impl<'a> Source<'a> {
    /// `None` if there is no readable debug info.
    pub(crate) fn of(binary: &'a [u8]) -> Option<Self> {
        let modules = sections::modules(binary).into_iter();
        let modules: Vec<_> =
            modules.filter_map(|(at, module)| ModuleSource::of(at, module)).collect();
        (!modules.is_empty()).then_some(Self { modules })
    }

    /// The frames of the instruction at an offset of the binary, innermost first. The last one is the
    /// function that contains it.
    pub(crate) fn frames(&self, offset: u32) -> Vec<Frame<'_, Reader<'a>>> {
        let offset = offset as usize;
        let module = self.modules.partition_point(|module| module.range.end <= offset);
        self.modules.get(module).map(|module| module.frames(offset)).unwrap_or_default()
    }
}

impl<'a> ModuleSource<'a> {
    fn of(at: usize, module: &'a [u8]) -> Option<Self> {
        let mut code = None;
        let mut debug = Vec::new();
        for section in sections::of(module) {
            if section.id == sections::CODE {
                code = Some(at + section.start);
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
        let context = Context::from_dwarf(dwarf).ok()?;
        Some(Self { range: at..at + module.len(), code: code?, context })
    }

    fn frames(&self, offset: usize) -> Vec<Frame<'_, Reader<'a>>> {
        let mut frames = Vec::new();
        let Some(probe) = offset.checked_sub(self.code) else { return frames };
        // There is no split DWARF in a single binary.
        let Ok(mut found) = self.context.find_frames(probe as u64).skip_all_loads() else {
            return frames;
        };
        while let Ok(Some(frame)) = found.next() {
            frames.push(frame);
        }
        frames
    }
}
