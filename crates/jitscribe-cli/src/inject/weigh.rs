//! The second look at a recording: which code was seen running, and when.

use std::collections::BTreeSet;

use code_timeline::{CodeId, LifeId, Usage};
use perf_data::{Callchain, ChainEntry, Context, Input, Record, kind, misc};

use super::address_space::AddressSpaces;
use super::answers::{Answers, Says};
use super::codes::{Ahead, CodeBook};
use super::seen::SeenTable;
use super::survey::Survey;

/// What the samples say about the code.
#[derive(Debug, Default)]
pub struct Weights {
    seen: SeenTable,
    /// Samples by where they were taken.
    pub counts: Counts,
    /// Code that came only after something else had run in its place, each once, in order.
    ahead: BTreeSet<Ahead>,
}

/// Samples by where they were taken.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Counts {
    /// All samples.
    pub samples: u64,
    /// In jitted code that the sources know: it has a name now.
    pub named: u64,
    /// Of these, those that perf names by itself, by a perf map at its usual place.
    pub named_before: u64,
    /// In memory that is no file's, where no source knows any code.
    pub unnamed: u64,
    /// Elsewhere, with code that the sources know on the call stack. Interpreters of which only the way from frame to
    /// frame is jitted (CPython's) have all of theirs here.
    pub through: u64,
}

impl Counts {
    /// Samples in jitted code, named or not.
    pub fn jitted(&self) -> u64 {
        self.named + self.unnamed
    }
}

impl Weights {
    /// Reads the recording from its beginning to its end.
    pub fn of(
        recording: &mut Input,
        survey: &Survey,
        spaces: &AddressSpaces,
        book: &CodeBook<'_>,
        named_by_perf: &dyn Fn(u32) -> bool,
        tick: impl Fn(u64),
    ) -> Result<Self, perf_data::Error> {
        let mut weights = Self { seen: SeenTable::new(book.len()), ..Self::default() };
        let mut answers = Answers::new(survey, spaces, book, named_by_perf);
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
            weights.counts.samples += 1;
            let Some(pid) = sample.id.pid else { continue };
            let time = sample.id.time.unwrap_or(u64::MAX);
            let Some(process) = answers.process(pid, time) else { continue };
            let time_of_code = process.time_of_code(time);
            let Self { seen, counts, ahead } = &mut weights;
            let jitted = counts.jitted();
            let mut on_stack = false;
            if let Some(ip) = sample.ip.filter(|_| event.misc() & misc::CPU_MODE_MASK == misc::USER)
            {
                match &mut answers.at(&process, ip, time, seen).says {
                    Says::Code(code) => {
                        seen.again(*code, time_of_code, 1);
                        counts.named += 1;
                        counts.named_before += u64::from(process.named_by_perf);
                    }
                    Says::Nothing { unnamed, ahead: came } => {
                        counts.unnamed += u64::from(*unnamed);
                        // Told once, it is known.
                        ahead.extend(came.take().and_then(|code| process.ahead(code)));
                    }
                }
            }
            for address in user_addresses(sample.callchain) {
                let answer = answers.at(&process, address, time, seen);
                if let Says::Code(code) = answer.says {
                    seen.again(code, time_of_code, 0);
                    on_stack = true;
                }
                // A return address may lie just behind the code that called.
                let call = address.wrapping_sub(1);
                if !answer.is_for(call)
                    && let Says::Code(code) = answers.at(&process, call, time, seen).says
                {
                    seen.again(code, time_of_code, 0);
                    on_stack = true;
                }
            }
            counts.through += u64::from(on_stack && counts.jitted() == jitted);
        }
        Ok(weights)
    }

    /// Code that came only after something else had run in its place: each once, by owner.
    pub fn ahead(&self) -> Vec<Ahead> {
        self.ahead.iter().copied().collect()
    }

    /// When `code` was seen running in `life`, if it was.
    pub fn usage(&self, life: LifeId, code: CodeId) -> Option<Usage> {
        self.seen.usage(life, code)
    }

    /// In which code samples were taken, and how many; code that several lives ran comes once for
    /// each of their timelines.
    pub fn hits(&self) -> impl Iterator<Item = (CodeId, u64)> {
        self.seen.hits()
    }
}

/// The addresses of a call chain that lie in user code.
fn user_addresses(chain: Callchain<'_>) -> impl Iterator<Item = u64> {
    let mut user = false;
    chain.filter_map(move |entry| match entry {
        ChainEntry::Context(context) => {
            user = context == Context::User;
            None
        }
        ChainEntry::Address(address) => user.then_some(address),
    })
}
