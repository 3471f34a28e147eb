//! The files that were mapped at the time of a sample, for the unwinding of its stack.

use std::collections::HashMap;

use code_timeline::AddressSpaceId;
use native_files::FileFrames;
use perf_data::{Attr, Sample};
use stack_unwind::{
    End, Guess, Mapped, Mappings, Registers, StackCopy, register, unwind, unwind_both,
};

use super::v8_interpreter::Part;
use crate::files::RecordedFiles;
use crate::interner::NameId;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::{MapEvent, RecordingIndex, WITHOUT_TIME};

/// How to unwind where there are no unwind tables.
#[derive(Clone, Copy, Debug)]
pub enum Guesses {
    /// In one way.
    One(Guess),
    /// By frame pointers; the end is also found as perf unwinds, for [`StackCounter`](crate::StackCounter).
    Both,
}

/// How a copied stack ends: `None` if it is whole.
#[derive(Clone, Copy, Debug)]
pub struct CopiedEnd {
    /// By the frames that were found.
    pub end: Option<End>,
    /// As perf unwinds, with [`Guesses::Both`]; else the same.
    pub as_perf: Option<End>,
}

/// The files that were mapped, at the time of one sample after the other.
pub struct MappedFiles<'a> {
    pub index: &'a RecordingIndex,
    pub spaces: &'a AddressSpaces,
    opened: OpenedFiles<'a>,
    /// Of the sample.
    space: Option<AddressSpaceId>,
    time: u64,
}

struct OpenedFiles<'a> {
    files: RecordedFiles<'a>,
    read: HashMap<NameId, Option<FileFrames>>,
    /// By offset in a file.
    parts: HashMap<(NameId, u64), Option<Part>>,
}

impl<'a> MappedFiles<'a> {
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        files: RecordedFiles<'a>,
    ) -> Self {
        let opened = OpenedFiles { files, read: HashMap::new(), parts: HashMap::new() };
        Self { index, spaces, opened, space: None, time: 0 }
    }

    /// Sets the time and the process of what is asked next.
    pub fn go_to(&mut self, sample: &Sample<'_>) -> Option<AddressSpaceId> {
        self.time = sample.id.time.unwrap_or(WITHOUT_TIME);
        self.space = Some(self.index.processes.at(sample.id.pid?, self.time)?);
        self.space
    }

    /// The same, where the process's address space is known.
    pub fn set_place(&mut self, space: AddressSpaceId, time: u64) {
        (self.space, self.time) = (Some(space), time);
    }

    /// The mapping of a file at an address.
    fn mapping(&self, address: u64) -> Option<&'a MapEvent> {
        let map = self.spaces.mapping(self.index, self.space?, address, self.time)?;
        self.index.maps.get(map).filter(|map| !map.anonymous)
    }

    /// The file at an address, and how far addresses in the process are above those in the file. Outside there is no file, inside it cannot
    /// be read.
    fn file(&mut self, address: u64) -> Option<Option<(&FileFrames, u64)>> {
        let map = self.mapping(address)?;
        let file = self.opened.file(map.name);
        Some(file.and_then(|file| {
            let above_file = file.above_offset(address.wrapping_sub(map.above_offset))?;
            Some((file, map.above_offset.wrapping_sub(above_file)))
        }))
    }

    /// The part of V8's interpreter at an address.
    fn part(&mut self, address: u64) -> Option<Part> {
        let map = self.mapping(address)?;
        self.opened.part(map.name, address.wrapping_sub(map.above_offset))
    }

    pub fn is_bottom(&mut self, address: u64) -> bool {
        let file = self.file(address).flatten();
        file.is_some_and(|(file, bias)| file.is_bottom(address.wrapping_sub(bias)))
    }

    /// Removes what the kernel found by frame pointers behind the caller of `main`, or of the function of a thread: the C library may leave
    /// anything in the frame pointer there.
    pub fn cut_behind_first(&mut self, frames: &mut Vec<u64>) {
        /// What looks like frames ends soon. Deep stacks without a known bottom are not searched through.
        const MOST: usize = 8;
        if frames.last().is_none_or(|&last| self.is_bottom(last)) {
            return;
        }
        let mut is_caller = |address: u64| {
            let file = self.file(address).flatten();
            file.is_some_and(|(file, bias)| file.is_caller_of_first(address.wrapping_sub(bias)))
        };
        let behind = frames.iter().rev().take(MOST).position(|&address| is_caller(address));
        frames.truncate(frames.len().saturating_sub(behind.unwrap_or(0)));
    }

    /// Finds the frames of a stack that was copied, and how it ends. `None` if there is no copy.
    pub fn unwound(
        &mut self,
        attr: &Attr,
        sample: &Sample<'_>,
        guesses: Guesses,
        frames: &mut Vec<u64>,
    ) -> Option<CopiedEnd> {
        if sample.user_registers.len() == 0 {
            return None;
        }
        self.go_to(sample)?;
        let registers = Registers::from_perf(attr.sample_regs_user, sample.user_registers);
        let address = registers.get(register::RSP)?;
        let stack = StackCopy { address, bytes: sample.user_stack };
        let both = match guesses {
            Guesses::One(guess) => {
                let end = unwind(registers, stack, self, guess, frames);
                let end = self.unless_whole(end, frames.last());
                return Some(CopiedEnd { end, as_perf: end });
            }
            Guesses::Both => unwind_both(registers, stack, self, frames),
        };
        let as_perf = self.unless_whole(both.as_perf, both.outermost_as_perf.as_ref());
        let end = self.unless_whole(both.end, frames.last());
        Some(CopiedEnd { end, as_perf })
    }

    fn unless_whole(&mut self, end: End, last: Option<&u64>) -> Option<End> {
        let is_whole = end.is_bottom() || last.is_some_and(|&last| self.is_bottom(last));
        (!is_whole).then_some(end)
    }
}

impl Mappings for MappedFiles<'_> {
    fn at(&mut self, address: u64) -> Mapped {
        match self.file(address) {
            None => Mapped::NoFile,
            Some(None) => Mapped::NoTables,
            Some(Some((file, bias))) => match &file.tables {
                Some(tables) => Mapped::File { tables: tables.clone(), bias },
                None => Mapped::NoTables,
            },
        }
    }

    fn is_frameless(&mut self, address: u64, word: u64) -> bool {
        self.part(address) == Some(Part::Handler)
            && self.part(word.wrapping_sub(1)) == Some(Part::Entry)
    }
}

impl OpenedFiles<'_> {
    fn file(&mut self, name: NameId) -> Option<&FileFrames> {
        let Self { files, read, .. } = self;
        read.entry(name).or_insert_with(|| files.frames(name)).as_ref()
    }

    fn part(&mut self, name: NameId, offset: u64) -> Option<Part> {
        let Self { files, parts, .. } = self;
        *parts
            .entry((name, offset))
            .or_insert_with(|| Part::of(&files.functions(name)?.name(offset)?))
    }
}
