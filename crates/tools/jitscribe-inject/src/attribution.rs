//! The second reading of a recording: which code each sample is in, and when each code was sampled.

use std::collections::BTreeSet;

use code_timeline::{AddressSpaceId, CodeId, Usage};
use perf_data::{Callchain, ChainEntry, Context, Input, Record, kind, misc};

use super::address_space::AddressSpaces;
use super::code_table::LateCode;
use super::counts::Counts;
use super::interpreted::{Field, InterpretedFrames};
use super::lookup::{LookupCache, Occupant};
use super::progress::{Progress, Stage};
use super::recording::Recording;
use super::recording_index::RecordingIndex;
use super::sampled::SampledCodes;
use super::sources::Codes;
use super::{Error, Result};

/// The samples of a recording by code.
#[derive(Debug, Default)]
pub struct SampleAttribution {
    sampled: SampledCodes,
    /// Samples by where they were taken.
    pub counts: Counts,
    /// Code that was loaded after something else had run at its address: each once, in order.
    late: BTreeSet<LateCode>,
}

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
            let time = sample.id.time.unwrap_or(u64::MAX);
            let Some(process) = cache.process(pid, time) else { continue };
            let Self { sampled, counts, late } = &mut attribution;
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
                    Occupant::Nothing { unnamed, late: came } => {
                        counts.unnamed += u64::from(*unnamed);
                        // Each is recorded only once.
                        late.extend(came.take().and_then(|code| process.late(code)));
                    }
                }
            }
            for address in user_addresses(sample.callchain) {
                let answer = cache.at(&process, address, time, sampled);
                if let Occupant::Code { mark: code, as_of } = answer.occupant {
                    sampled.again(code, as_of.unwrap_or(time), 0);
                    on_stack = true;
                }
                // A return address may be just behind the code of the caller.
                let call = address.wrapping_sub(1);
                if !answer.is_for(call)
                    && let Occupant::Code { mark: code, as_of } =
                        cache.at(&process, call, time, sampled).occupant
                {
                    sampled.again(code, as_of.unwrap_or(time), 0);
                    on_stack = true;
                }
            }
            counts.through += u64::from(on_stack && counts.jitted() == jitted);
        }
        Ok(attribution)
    }

    /// Code that was loaded after something else had run at its address: each once, by owner.
    pub(crate) fn late(&self) -> Vec<LateCode> {
        self.late.iter().copied().collect()
    }

    /// When `code` was seen running in `space`, if it was.
    pub(crate) fn usage(&self, space: AddressSpaceId, code: CodeId) -> Option<Usage> {
        self.sampled.usage(space, code)
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
