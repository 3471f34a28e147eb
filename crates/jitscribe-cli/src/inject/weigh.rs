//! The second look at a recording: which code was seen running, and when.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use code_timeline::{CodeId, LifeId, Usage};
use perf_data::{Callchain, ChainEntry, Context, Input, Record, kind, misc};

use super::address_space::AddressSpaces;
use super::codes::{Ahead, CodeBook};
use super::survey::Survey;

/// What the samples say about the code.
#[derive(Debug, Default)]
pub struct Weights {
    /// When each code was seen running, by the life in whose timeline it stands.
    usage: BTreeMap<LifeId, HashMap<CodeId, Usage>>,
    /// How many samples were taken in each code.
    pub hits: HashMap<CodeId, u64>,
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
                        weights.note(found);
                        *weights.hits.entry(found.2).or_default() += 1;
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
                // A return address may lie just behind the code that called.
                for address in [address, address.wrapping_sub(1)] {
                    if let Some(found) = book.find(survey, life, address, time) {
                        weights.note(found);
                    }
                }
            }
        }
        Ok(weights)
    }

    fn note(&mut self, (life, time, code): (LifeId, u64, CodeId)) {
        self.usage.entry(life).or_default().entry(code).or_insert(Usage::once(time)).again(time);
    }

    /// Code that came only after something else had run in its place: each once, by owner.
    pub fn ahead(&self) -> Vec<Ahead> {
        self.ahead.iter().copied().collect()
    }

    /// When `code` was seen running in `life`, if it was.
    pub fn usage(&self, life: LifeId, code: CodeId) -> Option<Usage> {
        self.usage.get(&life)?.get(&code).copied()
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
