//! Which code each sample is in, and when each code was sampled: the second reading of a recording.
//!
//! In come a [`Recording`] and its [`Codes`]. The code of each sample and of its callers is looked up, with the words of
//! copied stacks ([`stack_words`]) and the methods of interpreted frames ([`interpreted`]). Samples in memory that no source
//! describes add codes with concluded names ([`inferred`]) to the table. [`samples`] passes the samples of any recording with
//! their stacks, and unwinds copied ones.
//!
//! Out goes a [`SampleAttribution`]: for each code its samples, and the first and last time at which it was seen. [`hits`]
//! has the samples by the codes' numbers.

pub mod captured;
pub mod counts;
pub mod hits;
pub mod inferred;
pub mod interpreted;
pub mod mapped_files;
pub mod runtime_file;
pub mod sampled;
pub mod samples;
pub mod stack_words;
pub mod v8_interpreter;

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
use counts::Counts;
use interpreted::{Field, InterpretedFrames};
use sampled::SampledCodes;
use stack_words::{ReferencedCodes, StackWords};

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
        let Recording { path, input, index, spaces, .. } = recording;
        progress(Progress::Begins(Stage::Attributing));
        input.restart();
        let tick = |at| progress(Progress::At(at));
        Self::read_from(input, index, spaces, codes, tick).map_err(Error::reading(path))
    }

    /// Like [`Self::read`], for a recording that is positioned at its beginning.
    pub(crate) fn read_from(
        recording: &mut Input,
        index: &RecordingIndex,
        spaces: &AddressSpaces,
        codes: &Codes<'_>,
        tick: impl Fn(u64),
    ) -> Result<Self, perf_data::Error> {
        let mut attribution =
            Self { sampled: SampledCodes::new(codes.table.history.len()), ..Self::default() };
        let named_by_perf = |pid| codes.named_by_perf.contains(&pid);
        let mut cache = LookupCache::new(index, spaces, &codes.table, &named_by_perf);
        let mut interpreted = InterpretedFrames::new(index, spaces, &codes.table);
        let mut words = index.stack_copies.then(|| StackWords::new(index, spaces, &codes.table));
        let mut read = 0u64;
        while let Some(event) = recording.next_event()? {
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
            let Self { sampled, counts, late, unnamed, .. } = &mut attribution;
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
                    counts.named += 1;
                    ip = None;
                }
            }
            if let Some(ip) = ip {
                match &mut cache.at(&process, ip, time, sampled).occupant {
                    Occupant::Code { mark: code, as_of } => {
                        sampled.again(*code, as_of.unwrap_or(time), 1);
                        counts.named += 1;
                        counts.named_before += u64::from(process.named_by_perf);
                    }
                    Occupant::Nothing { unnamed: is_unnamed, late: came } => {
                        counts.unnamed += u64::from(*is_unnamed);
                        if *is_unnamed
                            && unnamed.len() < UNNAMED
                            && let Some(space) = process.own_space()
                        {
                            unnamed.push(UnnamedSample { space, address: ip, time });
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
                let occupant = cache.at(&process, within, time, sampled).occupant;
                if let Occupant::Code { mark, as_of } = occupant {
                    sampled.again(mark, as_of.unwrap_or(time), 0);
                    on_stack = true;
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

    /// The codes that samples have, at the top of a call stack or below.
    pub(crate) fn seen(&self) -> impl Iterator<Item = CodeId> {
        self.sampled.seen()
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
