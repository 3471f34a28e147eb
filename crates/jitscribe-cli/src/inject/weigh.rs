//! The second look at a recording: which code was seen running, and when.

use std::collections::{BTreeSet, HashMap};

use code_timeline::{CodeId, LifeId, Usage};
use perf_data::{Callchain, ChainEntry, Context, Input, Record, kind, misc};
use rustc_hash::FxBuildHasher;

use super::address_space::AddressSpaces;
use super::codes::{Ahead, CodeBook, Found};
use super::survey::Survey;

/// What the samples say about the code.
#[derive(Debug, Default)]
pub struct Weights {
    /// What was seen of each code, by the life in whose timeline it stands.
    seen: HashMap<(LifeId, CodeId), Seen, FxBuildHasher>,
    /// Samples by where they were taken.
    pub counts: Counts,
    /// Code that came only after something else had run in its place, each once, in order.
    ahead: BTreeSet<Ahead>,
}

/// What the samples say about one code.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// When it was seen running, on top of a stack or within it.
    usage: Usage,
    /// How many samples were taken in it.
    hits: u64,
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
        let mut weights = Self::default();
        let mut seen = 0u64;
        while let Some(event) = recording.next_event()? {
            if event.kind() != kind::SAMPLE {
                continue;
            }
            seen += 1;
            if seen.is_multiple_of(4096) {
                tick(event.offset());
            }
            let Ok(Record::Sample(sample)) = event.record() else { continue };
            weights.counts.samples += 1;
            let Some(pid) = sample.id.pid else { continue };
            let time = sample.id.time.unwrap_or(u64::MAX);
            let Some(life) = survey.processes.at(pid, time) else { continue };
            if let Some(ip) = sample.ip.filter(|_| event.misc() & misc::CPU_MODE_MASK == misc::USER)
            {
                match book.find(survey, life, ip, time) {
                    Some(found) => {
                        weights.note(&found).hits += 1;
                        weights.counts.named += 1;
                        weights.counts.named_before += u64::from(named_by_perf(pid));
                    }
                    None => {
                        if spaces.is_anonymous(survey, life, ip, time) {
                            weights.counts.unnamed += 1;
                        }
                        weights.ahead.extend(book.ahead(survey, life, ip, time));
                    }
                }
            }
            for address in user_addresses(sample.callchain) {
                let found = book.find(survey, life, address, time);
                if let Some(found) = &found {
                    weights.note(found);
                }
                // A return address may lie just behind the code that called.
                let call = address.wrapping_sub(1);
                if !found.is_some_and(|found| found.same_at(call))
                    && let Some(found) = book.find(survey, life, call, time)
                {
                    weights.note(&found);
                }
            }
        }
        Ok(weights)
    }

    fn note(&mut self, found: &Found) -> &mut Seen {
        let new = || Seen { usage: Usage::once(found.time), hits: 0 };
        let seen = self.seen.entry((found.owner, found.code)).or_insert_with(new);
        seen.usage.again(found.time);
        seen
    }

    /// Code that came only after something else had run in its place: each once, by owner.
    pub fn ahead(&self) -> Vec<Ahead> {
        self.ahead.iter().copied().collect()
    }

    /// When `code` was seen running in `life`, if it was.
    pub fn usage(&self, life: LifeId, code: CodeId) -> Option<Usage> {
        self.seen.get(&(life, code)).map(|seen| seen.usage)
    }

    /// In which code samples were taken, and how many; code that several lives ran comes once for
    /// each of their timelines.
    pub fn hits(&self) -> impl Iterator<Item = (CodeId, u64)> {
        self.seen.iter().map(|(&(_, code), seen)| (code, seen.hits)).filter(|&(_, hits)| hits > 0)
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
