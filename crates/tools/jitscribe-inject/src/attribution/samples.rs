//! The samples of a recording one after the other, with their call stacks, and what was mapped at their addresses.

use std::fmt;
use std::ops::Range;

use code_timeline::AddressSpaceId;
use perf_data::{
    Callchain, ChainEntry, Comm, Context, Endian, Event, FileIdentity, Input, Record, Sample, Task,
    kind, misc, sample_type,
};
use stack_unwind::End;

use super::mapped_files::{CopiedEnd, Guesses, MappedFiles};
use crate::files::{RecordedFiles, SourceFiles};
use crate::recording::Recording;
use crate::recording::recording_index::KernelSymbol;
use crate::{Error, Result};

/// A sample with its call stack.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StackSample<'s> {
    /// The index of its event among the recording's attributes.
    pub event: usize,
    /// The process.
    pub pid: u32,
    /// The memory of the process at that time; `None` if nothing is known of the process.
    pub space: Option<AddressSpaceId>,
    /// The thread.
    pub tid: u32,
    /// The time, in nanoseconds of the recording's clock.
    pub time: u64,
    /// How many events it stands for, if the recording has it.
    pub period: Option<u64>,
    /// The addresses in the kernel, innermost first. All but the first are within the calls.
    pub kernel: &'s [u64],
    /// The addresses in user code, innermost first: all but the first are within the calls.
    pub user: &'s [u64],
    /// What is known of the stack's end.
    pub end: StackEnd,
    /// The same as perf unwinds, if that was asked for too.
    pub(crate) end_as_perf: StackEnd,
    /// Whether it was taken in user code.
    pub is_in_user: bool,
    /// Size of the stack's copy in bytes; 0 if there is none.
    pub copied: u64,
}

/// What is known of the end of a stack of user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackEnd {
    /// Stacks were not recorded, or the thread has no user code.
    NotRecorded,
    /// The kernel walked the stack: [`SampledMemory::is_bottom`] says whether it reached the bottom.
    Walked,
    /// The stack was copied, and unwound to its bottom.
    Whole,
    /// The stack was copied, and unwinding ended before the bottom.
    Ended(End),
}

impl StackEnd {
    /// Of a stack that was copied and ends so, if it is not whole. `is_shorter` tells that the kernel copied less than it was asked to.
    fn of_copied(end: Option<End>, is_shorter: bool) -> Self {
        match end {
            None => Self::Whole,
            // The kernel copies less where the stack's memory ends: more would not help.
            Some(End::BehindCopy { .. }) if is_shorter => Self::Ended(End::Unknown),
            Some(end) => Self::Ended(end),
        }
    }
}

/// An event of a recording that is not a mapping.
#[derive(Debug)]
#[non_exhaustive]
pub enum SampleEvent<'s> {
    /// A sample.
    Sample(StackSample<'s>),
    /// A thread has a new name.
    Comm(Comm<'s>),
    /// A thread or process began.
    Fork(Task),
}

/// What was mapped in the recorded processes.
pub struct SampledMemory<'a>(pub(crate) MappedFiles<'a>);

/// What was mapped at an address.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryAt<'m> {
    /// The file, or the kernel's name for memory without a file; `None` if nothing was mapped.
    pub name: Option<&'m [u8]>,
    /// Whether no file backs it.
    pub is_anonymous: bool,
    /// The address's offset in the file.
    pub offset: u64,
    /// The file's build-id, if the mapping was recorded with it.
    pub build_id: Option<&'m [u8]>,
    /// A number that stands for the name.
    pub name_number: usize,
    /// The times for which this is valid.
    pub times: Range<u64>,
}

impl fmt::Debug for SampledMemory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampledMemory").finish_non_exhaustive()
    }
}

impl SampledMemory<'_> {
    /// What was mapped at `address` at `time`.
    pub fn at(&self, space: AddressSpaceId, address: u64, time: u64) -> MemoryAt<'_> {
        let (index, spaces) = (self.0.index, self.0.spaces);
        let memory = spaces.around(index, space, address, time);
        let map = memory.mapping.and_then(|place| index.maps.get(place));
        MemoryAt {
            name: map.map(|map| index.name(map)),
            is_anonymous: memory.is_anonymous,
            offset: map.map_or(0, |map| address.wrapping_sub(map.above_offset)),
            build_id: map.and_then(|map| match &map.file {
                Some(FileIdentity::BuildId(id)) => Some(id.as_bytes()),
                _ => None,
            }),
            name_number: map.map_or(usize::MAX, |map| map.name.index()),
            times: memory.times,
        }
    }

    /// Whether stacks begin in the function at `address`.
    pub fn is_bottom(&mut self, space: AddressSpaceId, address: u64, time: u64) -> bool {
        self.0.set_place(space, time);
        self.0.is_bottom(address)
    }
}

/// The frames of one sample.
#[derive(Default)]
struct Frames {
    kernel: Vec<u64>,
    user: Vec<u64>,
}

impl Frames {
    fn is_empty(&self) -> bool {
        self.kernel.is_empty() && self.user.is_empty()
    }

    /// Divides a call chain.
    fn set(&mut self, chain: Callchain<'_>) {
        self.kernel.clear();
        self.user.clear();
        let mut part = None;
        for entry in chain {
            match entry {
                ChainEntry::Context(Context::Kernel) => part = Some(&mut self.kernel),
                ChainEntry::Context(Context::User) => part = Some(&mut self.user),
                ChainEntry::Context(_) => part = None,
                ChainEntry::Address(address) => {
                    if let Some(part) = &mut part {
                        // All but the first are return addresses.
                        let is_first = part.is_empty();
                        part.push(if is_first { address } else { address.wrapping_sub(1) });
                    }
                }
            }
        }
    }
}

impl Recording {
    /// The open recording: its attributes and features.
    #[must_use]
    pub fn reader(&self) -> &Input {
        &self.input
    }

    /// The address of the kernel's code, if the recording has it.
    #[must_use]
    pub fn kernel_text(&self) -> Option<u64> {
        self.index.kernel_text
    }

    /// The code that the kernel compiled, by address: BPF programs, and code of kprobes.
    #[must_use]
    pub fn kernel_symbols(&self) -> &[KernelSymbol] {
        &self.index.kernel_symbols
    }

    /// The paths under which object files of jitted code are mapped, if [`Injector`](crate::Injector) added some.
    pub fn image_paths(&self) -> impl Iterator<Item = &[u8]> {
        self.index.names.iter().filter(|name| crate::files::is_image(name))
    }

    /// The processes of the recording: for each address space its process id, when it began, and whether it was forked from another.
    pub fn address_spaces(&self) -> impl Iterator<Item = (AddressSpaceId, u32, bool)> {
        let processes = &self.index.processes;
        processes
            .spaces()
            .map(|space| (space, processes.pid(space), processes.parent(space).is_some()))
    }

    /// Passes all samples to `take`, in the order of the recording, with the events that name threads. Stacks that were copied are unwound: `guesses` say how,
    /// where there are no tables. Programs and libraries are opened by `files`.
    ///
    /// # Errors
    /// If the recording cannot be read any more.
    pub fn each_sample(
        &mut self,
        files: &dyn SourceFiles,
        guesses: Guesses,
        tick: &dyn Fn(u64),
        take: &mut dyn FnMut(&mut SampledMemory<'_>, SampleEvent<'_>),
    ) -> Result<()> {
        let Self { path, input, index, spaces, replaced } = self;
        let recorded = RecordedFiles::new(input, &index.names, replaced, files);
        let mut memory = SampledMemory(MappedFiles::new(index, spaces, recorded));
        let mut frames = Frames::default();
        let mut unwound = Vec::new();
        let mut read = 0_u64;
        input.restart();
        while let Some(event) = input.next_event().map_err(Error::reading(path))? {
            read += 1;
            if read.is_multiple_of(4096) {
                tick(event.offset());
            }
            if !matches!(event.kind(), kind::SAMPLE | kind::COMM | kind::FORK) {
                continue;
            }
            // An event that cannot be decoded is left out.
            let sample = match event.record() {
                Ok(Record::Sample(sample)) => sample,
                Ok(Record::Comm(comm)) => {
                    take(&mut memory, SampleEvent::Comm(comm));
                    continue;
                }
                Ok(Record::Fork(task)) => {
                    take(&mut memory, SampleEvent::Fork(task));
                    continue;
                }
                _ => continue,
            };
            let (Some(pid), Some(attr)) = (sample.id.pid, event.attr()) else { continue };
            let space = memory.0.go_to(&sample);
            let attrs = event.attrs().list();
            let number = attrs.iter().position(|one| std::ptr::eq(one, attr)).unwrap_or(0);
            frames.set(sample.callchain);
            let mut end = match frames.user.is_empty() {
                true => StackEnd::NotRecorded,
                false => StackEnd::Walked,
            };
            if end == StackEnd::Walked && space.is_some() {
                memory.0.cut_behind_first(&mut frames.user);
            }
            let is_in_user = event.misc() & misc::CPU_MODE_MASK == misc::USER;
            let has_chain = attr.has(sample_type::CALLCHAIN);
            if let Some(ip) = sample.ip.filter(|_| !has_chain || frames.is_empty()) {
                let part = if is_in_user { &mut frames.user } else { &mut frames.kernel };
                part.push(ip);
            }
            let mut user = &frames.user;
            let mut end_as_perf = end;
            let mut copied = 0;
            if index.stack_copies
                && space.is_some()
                && let Some(ends) = memory.0.unwound(attr, &sample, guesses, &mut unwound)
            {
                user = &unwound;
                copied = copied_size(&event, &sample);
                let is_shorter = (sample.user_stack.len() as u64) < copied;
                let CopiedEnd { end: found, as_perf } = ends;
                end = StackEnd::of_copied(found, is_shorter);
                end_as_perf = StackEnd::of_copied(as_perf, is_shorter);
            }
            let sample = StackSample {
                event: number,
                pid,
                space,
                tid: sample.id.tid.unwrap_or(pid),
                time: sample.id.time.unwrap_or(0),
                period: sample.period,
                kernel: &frames.kernel,
                user,
                end,
                end_as_perf,
                is_in_user,
                copied,
            };
            take(&mut memory, SampleEvent::Sample(sample));
        }
        Ok(())
    }
}

/// The size that was set aside for the copy of a stack: it stands before the copy.
fn copied_size(event: &Event<'_>, sample: &Sample<'_>) -> u64 {
    let before = sample.offsets.user_stack.checked_sub(8);
    let word = before.and_then(|at| event.body().get(at..)?.first_chunk());
    word.map_or(0, |word| match event.endian() {
        Endian::Little => u64::from_le_bytes(*word),
        Endian::Big => u64::from_be_bytes(*word),
    })
}
