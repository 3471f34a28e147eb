//! Which code each sample is in, and when each code was sampled: the second reading of a recording.
//!
//! In come a [`Recording`] and its [`Codes`]. The code of each sample and of its callers is looked up, with the words of
//! copied stacks ([`stack_words`]) and the methods of interpreted frames ([`interpreted`]). Each sample also counts by what the
//! runtime was doing ([`activity`], [`work`]). Samples in memory that no source describes add codes with concluded names
//! ([`inferred`]) to the table. [`samples`] passes the samples of any recording with their stacks, and unwinds copied ones.
//!
//! Out goes a [`SampleAttribution`]: for each code its samples, and the first and last time at which it was seen. [`hits`]
//! has the samples by the codes' numbers.

pub mod activity;
pub mod captured;
pub mod copied_stacks;
pub mod counts;
pub mod hits;
pub mod inclusive;
pub mod inferred;
pub mod interpreted;
pub mod mapped_files;
pub mod runtime_file;
pub mod sampled;
pub mod samples;
pub mod stack_words;
pub mod v8_interpreter;
pub mod work;

use std::collections::BTreeSet;

use code_timeline::{AddressSpaceId, CodeId, Usage};
use perf_data::{Callchain, ChainEntry, Context, Input, Record, kind, misc};

use crate::codes::code_table::{CodeTable, LateCode};
use crate::codes::lookup::{LookupCache, Occupant};
use crate::codes::sources::Codes;
use crate::progress::{Progress, Stage};
use crate::recording::Recording;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::{RecordingIndex, WITHOUT_TIME};
use crate::{Error, Result};
use activity::{Activities, Activity, NativeActivities, RuntimeFiles};
use counts::Counts;
use inclusive::StackSets;
use interpreted::{Field, InterpretedFrames};
use sampled::SampledCodes;
use stack_words::{ReferencedCodes, StackWords};
use work::{ThreadTasks, Work, work_of_frame};

/// The samples of a recording by code.
#[derive(Debug, Default)]
pub struct SampleAttribution {
    sampled: SampledCodes,
    /// What copied stacks refer to.
    referenced: ReferencedCodes,
    /// Samples by where they were taken.
    pub counts: Counts,
    /// Code that was loaded after something else had run at its address: each once, in order.
    late: BTreeSet<LateCode>,
    /// The unnamed samples, up to a limit, in memory that the process shares with no other.
    pub(crate) unnamed: Vec<UnnamedSample>,
    activities: Activities,
    stacks: StackSets,
}

/// A sample in memory that no file backs, where no code is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnnamedSample {
    /// The address space.
    pub space: AddressSpaceId,
    /// The address.
    pub address: u64,
    /// The time.
    pub time: u64,
}

/// Number of unnamed samples that are kept, in 24 MB. A recording of 1,000 samples a second has these in 17 minutes.
const UNNAMED: usize = 1 << 20;

impl SampleAttribution {
    /// Reads a recording from its beginning to its end, and finds the code of each sample and of each of its callers.
    ///
    /// # Errors
    /// If the recording cannot be read any more.
    pub fn read(
        recording: &mut Recording,
        codes: &Codes<'_>,
        progress: &dyn Fn(Progress),
    ) -> Result<Self> {
        let Recording { path, input, index, spaces } = recording;
        progress(Progress::Begins(Stage::Attributing));
        input.restart();
        let tick = |at| progress(Progress::At(at));
        let runtimes = RuntimeFiles::default();
        Self::read_from(input, index, spaces, codes, &runtimes, tick).map_err(Error::reading(path))
    }

    /// Like [`Self::read`], for a recording that is positioned at its beginning.
    pub(crate) fn read_from(
        recording: &mut Input,
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        codes: &Codes<'_>,
        runtimes: &RuntimeFiles,
        tick: impl Fn(u64),
    ) -> Result<Self, perf_data::Error> {
        let mut attribution =
            Self { sampled: SampledCodes::new(codes.table.history.len()), ..Self::default() };
        let named_by_perf = |pid| codes.named_by_perf.contains(&pid);
        let mut cache = LookupCache::new(index, spaces, &codes.table, &named_by_perf);
        let mut natives = NativeActivities::new(index, spaces, runtimes);
        let mut threads = ThreadTasks::default();
        let mut interpreted = InterpretedFrames::new(index, spaces, &codes.table);
        let mut words = index.stack_copies.then(|| StackWords::new(index, spaces, &codes.table));
        let mut read = 0u64;
        while let Some(event) = recording.next_event()? {
            if event.kind() == kind::COMM
                && let Ok(Record::Comm(comm)) = event.record()
            {
                threads.name(&comm);
            }
            if event.kind() != kind::SAMPLE {
                continue;
            }
            read += 1;
            if read.is_multiple_of(4096) {
                tick(event.offset());
            }
            let Ok(Record::Sample(sample)) = event.record() else { continue };
            attribution.counts.samples += 1;
            let Some(pid) = sample.id.pid else { continue };
            let time = sample.id.time.unwrap_or(WITHOUT_TIME);
            let Some(process) = cache.process(pid, time) else { continue };
            if let Some(words) = &mut words {
                words.add(&process, time, &sample, event.endian());
            }
            let Self { sampled, counts, late, unnamed, activities, stacks, .. } = &mut attribution;
            let mut work = None;
            let jitted = counts.jitted();
            let mut on_stack = false;
            let is_in_user = event.misc() & misc::CPU_MODE_MASK == misc::USER;
            let mut ip = sample.ip.filter(|_| is_in_user);
            for frame in interpreted.as_mut().map_or(&[][..], |them| them.find(&event, &sample)) {
                let is_top = frame.field == Field::Ip;
                let mark = sampled.id(frame.owner, frame.code, time);
                sampled.again(mark, time, is_top.into());
                on_stack = true;
                if is_top {
                    stacks.add_own(frame.code);
                    counts.named += 1;
                    work = Some(Work::Runtime(Activity::Interpreter));
                    ip = None;
                }
            }
            let is_alone = user_addresses(sample.callchain).next().is_none();
            if let Some(ip) = ip {
                match &mut cache.at(&process, ip, time, sampled).occupant {
                    Occupant::Code { mark: code, as_of } => {
                        sampled.again(*code, as_of.unwrap_or(time), 1);
                        sampled.code(*code).into_iter().for_each(|code| stacks.add_own(code));
                        work = Some(Work::Jitted);
                        counts.named += 1;
                        counts.named_before += u64::from(process.named_by_perf);
                    }
                    Occupant::Nothing { unnamed: is_unnamed, late: came } => {
                        counts.unnamed += u64::from(*is_unnamed);
                        if *is_unnamed {
                            work = Some(Work::Jitted);
                            if unnamed.len() < UNNAMED
                                && let Some(space) = process.own_space()
                            {
                                unnamed.push(UnnamedSample { space, address: ip, time });
                            }
                        } else if is_alone && process.owner().is_some() {
                            let native = || natives.at(process.space(), ip, time);
                            work = work_of_frame(true, false, native);
                        }
                        // Each is recorded only once.
                        late.extend(came.take().and_then(|code| process.late(code)));
                    }
                }
            }
            for (depth, address) in user_addresses(sample.callchain).enumerate() {
                let is_top = depth == 0;
                // Below the top are return addresses, which may be just behind the code of the caller. The instruction at the top may be
                // the first of its code: what is before it was not running.
                let within = if is_top { address } else { address.wrapping_sub(1) };
                let frame = match cache.at(&process, within, time, sampled).occupant {
                    Occupant::Code { mark, as_of } => {
                        sampled.again(mark, as_of.unwrap_or(time), 0);
                        on_stack = true;
                        Some(mark)
                    }
                    Occupant::Nothing { .. } => None,
                };
                frame
                    .and_then(|mark| sampled.code(mark))
                    .into_iter()
                    .for_each(|code| stacks.add(code));
                if work.is_none() && process.owner().is_some() {
                    let native = || natives.at(process.space(), within, time);
                    work = work_of_frame(is_top, frame.is_some(), native);
                }
            }
            stacks.end_sample(!is_alone && !index.stack_copies);
            if process.owner().is_some() {
                match is_in_user {
                    true => activities.add_in_user(work, threads.of(sample.id.tid)),
                    false => activities.add_in_kernel(),
                }
            }
            counts.through += u64::from(on_stack && counts.jitted() == jitted);
        }
        if index.has_trace {
            attribution.sampled.add_all(&codes.table);
        }
        attribution.referenced = words.map(StackWords::finish).unwrap_or_default();
        Ok(attribution)
    }

    /// Looks up the unnamed samples again, after codes with inferred names were added.
    pub(crate) fn add_inferred(&mut self, table: &CodeTable<'_>) {
        self.sampled.grow(table.history.len());
        for UnnamedSample { space, address, time } in std::mem::take(&mut self.unnamed) {
            let timeline = table.history.timeline(space);
            if let Some(piece) = timeline.and_then(|timeline| timeline.at(address, time)) {
                let id = self.sampled.id(space, piece.code, time);
                self.sampled.again(id, time, 1);
                // Its callers count already.
                self.stacks.add_own(piece.code);
                self.stacks.end_sample(false);
                self.counts.inferred += 1;
                self.counts.unnamed -= 1;
            }
        }
    }

    /// The codes in which samples were taken, at the top of a call stack or below: in whose timeline, and when.
    pub(crate) fn sampled_codes(&self) -> impl Iterator<Item = (AddressSpaceId, CodeId, Usage)> {
        self.sampled.all()
    }

    /// Code that was loaded after something else had run at its address: each once, by owner.
    pub(crate) fn late(&self) -> Vec<LateCode> {
        self.late.iter().copied().collect()
    }

    /// The codes on the stacks of samples.
    pub(crate) fn stacks(&self) -> &StackSets {
        &self.stacks
    }

    /// Samples by what was done, with those in interpreters among the codes as compiled code.
    pub(crate) fn activities(&self) -> Activities {
        self.activities
    }

    /// When `code` was seen running in `space`, if it was.
    pub(crate) fn usage(&self, space: AddressSpaceId, code: CodeId) -> Option<Usage> {
        self.sampled.usage(space, code)
    }

    /// When `code` was seen running in `space`, or a copied stack referred to it, if either was so.
    pub(crate) fn usage_on_stacks(&self, space: AddressSpaceId, code: CodeId) -> Option<Usage> {
        let (sampled, referenced) = (self.usage(space, code), self.referenced.usage(space, code));
        let (Some(sampled), Some(referenced)) = (sampled, referenced) else {
            return sampled.or(referenced);
        };
        Some(Usage {
            first: sampled.first.min(referenced.first),
            last: sampled.last.max(referenced.last),
        })
    }

    /// The codes in which samples were taken, with their number. Code that several address spaces ran appears once for
    /// each of their timelines.
    pub fn hits(&self) -> impl Iterator<Item = (CodeId, u64)> {
        self.sampled.hits()
    }
}

/// The addresses in a call chain that are in user code.
pub(crate) fn user_addresses(chain: Callchain<'_>) -> impl Iterator<Item = u64> {
    let mut user = false;
    chain.filter_map(move |entry| match entry {
        ChainEntry::Context(context) => {
            user = context == Context::User;
            None
        }
        ChainEntry::Address(address) => user.then_some(address),
    })
}
