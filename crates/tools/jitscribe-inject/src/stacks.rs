//! How many call stacks of a recording are whole, and why the others end.
//!
//! Of stacks that were walked while the program ran (by frame pointers), the last frame is looked at. Stacks that were copied are unwound
//! as perf unwinds them.

use std::collections::HashMap;

use code_timeline::AddressSpaceId;
use native_files::FileFrames;
use perf_data::{Attr, Endian, Event, Record, Sample, kind, sample_type};
use stack_unwind::{End, Guess, Mapped, Mappings, Registers, StackCopy, register, unwind};

use super::address_space::AddressSpaces;
use super::attribution::user_addresses;
use super::files::{RecordedFiles, SourceFiles};
use super::interner::NameId;
use super::recording::Recording;
use super::recording_index::RecordingIndex;
use super::stack_counts::{StackCounts, StackEnds, Stacks};
use super::{Error, Result};

/// The user part of a sample's call stack.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallStack<'s> {
    /// The thread.
    pub tid: Option<u32>,
    /// The time, in nanoseconds of the recording's clock.
    pub time: Option<u64>,
    /// The instruction pointer, and then the addresses of the calls, innermost first: each is within the call, as perf has them.
    pub frames: &'s [u64],
    /// Why it ends; `None` if it is whole.
    pub end: Option<End>,
    /// Size of the copy in bytes; 0 if the kernel walked the stack.
    pub copied: u64,
}

impl Recording {
    /// Passes the call stacks of all samples to `take`. Those that were copied are unwound: `guess` says how, where there are no tables.
    /// Programs and libraries are opened by `files`. Returns how the stacks were recorded; `None` if there are none.
    ///
    /// # Errors
    /// If the recording cannot be read any more.
    pub fn each_stack(
        &mut self,
        files: &dyn SourceFiles,
        guess: Guess,
        take: &mut dyn FnMut(CallStack<'_>),
    ) -> Result<Option<Stacks>> {
        let Self { path, input, index, spaces } = self;
        let attrs = input.attrs().list();
        let recorded = if index.stack_copies {
            Stacks::Copied
        } else if attrs.iter().any(|attr| attr.has(sample_type::CALLCHAIN)) {
            Stacks::Walked
        } else {
            return Ok(None);
        };
        let files = RecordedFiles::new(input, &index.names, files);
        let mut mapped = MappedFiles::new(index, spaces, files);
        let mut frames = Vec::new();
        input.restart();
        while let Some(event) = input.next_event().map_err(Error::reading(path))? {
            if event.kind() != kind::SAMPLE {
                continue;
            }
            let Ok(Record::Sample(sample)) = event.record() else { continue };
            let end = match (recorded, event.attr()) {
                (Stacks::Walked, _) => mapped.walked(&sample, &mut frames),
                (Stacks::Copied, Some(attr)) => mapped.unwound(attr, &sample, guess, &mut frames),
                (Stacks::Copied, None) => None,
            };
            if let Some(mut end) = end {
                let (tid, time) = (sample.id.tid, sample.id.time);
                let copied = copied_size(&event, &sample);
                // The kernel copies less where the stack's memory ends: more would not help.
                if matches!(end, Some(End::BehindCopy { .. }))
                    && (sample.user_stack.len() as u64) < copied
                {
                    end = Some(End::Unknown);
                }
                take(CallStack { tid, time, frames: &frames, end, copied });
            }
        }
        Ok(Some(recorded))
    }
}

/// The size that was set aside for the copy of a stack: it stands before the copy.
pub(crate) fn copied_size(event: &Event<'_>, sample: &Sample<'_>) -> u64 {
    let before = sample.offsets.user_stack.checked_sub(8);
    let word = before.and_then(|at| event.body().get(at..)?.first_chunk());
    word.map_or(0, |word| match event.endian() {
        Endian::Little => u64::from_le_bytes(*word),
        Endian::Big => u64::from_be_bytes(*word),
    })
}

impl StackCounts {
    /// Counts the stacks of a recording as perf shows them; `None` if it has none. Programs and libraries are opened by `files`.
    ///
    /// # Errors
    /// If the recording cannot be read any more.
    pub fn of(recording: &mut Recording, files: &dyn SourceFiles) -> Result<Option<Self>> {
        let (mut stacks, mut whole, mut copied) = (0, 0, 0);
        let mut ends = StackEnds::default();
        let recorded = recording.each_stack(files, Guess::AsPerf, &mut |stack| {
            stacks += 1;
            copied = stack.copied.max(copied);
            match stack.end {
                None => whole += 1,
                Some(end) => ends.count(end),
            }
        })?;
        Ok(recorded.map(|recorded| Self { recorded, stacks, whole, ends, copied }))
    }
}

impl StackEnds {
    fn count(&mut self, end: End) {
        let counter = match end {
            End::BehindCopy { .. } => &mut self.deeper_than_copy,
            End::NoFile { .. }
            | End::NoTables { .. }
            | End::NoFramePointer
            | End::BadFramePointer => &mut self.no_tables,
            End::OtherMemory { .. } => &mut self.other_memory,
            _ => &mut self.other,
        };
        *counter += 1;
    }
}

/// The files that were mapped, at the time of one sample after the other.
pub(crate) struct MappedFiles<'a> {
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
}

impl<'a> MappedFiles<'a> {
    pub fn new(
        index: &'a RecordingIndex,
        spaces: &'a AddressSpaces,
        files: RecordedFiles<'a>,
    ) -> Self {
        let opened = OpenedFiles { files, read: HashMap::new() };
        Self { index, spaces, opened, space: None, time: 0 }
    }

    /// Sets the time and the process of what is asked next.
    pub fn go_to(&mut self, sample: &Sample<'_>) -> Option<AddressSpaceId> {
        self.time = sample.id.time.unwrap_or(u64::MAX);
        self.space = Some(self.index.processes.at(sample.id.pid?, self.time)?);
        self.space
    }

    /// The same, where the process's address space is known.
    pub fn set_place(&mut self, space: AddressSpaceId, time: u64) {
        (self.space, self.time) = (Some(space), time);
    }

    /// The file at an address, and how far addresses in the process are above those in the file. Outside there is no file, inside it cannot
    /// be read.
    fn file(&mut self, address: u64) -> Option<Option<(&FileFrames, u64)>> {
        let map = self.spaces.mapping(self.index, self.space?, address, self.time)?;
        let map = self.index.maps.get(map).filter(|map| !map.anonymous)?;
        let file = self.opened.file(map.name);
        Some(file.and_then(|file| {
            let above_file = file.above_offset(address.wrapping_sub(map.above_offset))?;
            Some((file, map.above_offset.wrapping_sub(above_file)))
        }))
    }

    pub fn is_bottom(&mut self, address: u64) -> bool {
        let file = self.file(address).flatten();
        file.is_some_and(|(file, bias)| file.is_bottom(address.wrapping_sub(bias)))
    }

    /// The frames of a walked stack, and where it ends, if it has user code: outside there is none, inside it is whole.
    fn walked(&mut self, sample: &Sample<'_>, frames: &mut Vec<u64>) -> Option<Option<End>> {
        self.go_to(sample)?;
        frames.clear();
        // All but the first are return addresses.
        let mut addresses = user_addresses(sample.callchain);
        frames.extend(addresses.next());
        frames.extend(addresses.map(|address| address.wrapping_sub(1)));
        let last = *frames.last()?;
        Some((!self.is_bottom(last)).then_some(End::Unknown))
    }

    /// The same for a stack that was copied.
    pub fn unwound(
        &mut self,
        attr: &Attr,
        sample: &Sample<'_>,
        guess: Guess,
        frames: &mut Vec<u64>,
    ) -> Option<Option<End>> {
        if sample.user_registers.len() == 0 {
            return None;
        }
        self.go_to(sample)?;
        let registers = Registers::from_perf(attr.sample_regs_user, sample.user_registers);
        let address = registers.get(register::RSP)?;
        let stack = StackCopy { address, bytes: sample.user_stack };
        let end = unwind(registers, stack, self, guess, frames);
        let is_whole = end.is_bottom() || frames.last().is_some_and(|&last| self.is_bottom(last));
        Some((!is_whole).then_some(end))
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
}

impl OpenedFiles<'_> {
    fn file(&mut self, name: NameId) -> Option<&FileFrames> {
        let Self { files, read } = self;
        read.entry(name).or_insert_with(|| files.frames(name)).as_ref()
    }
}
