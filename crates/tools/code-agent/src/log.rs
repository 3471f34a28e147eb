//! A code log of a process.

use std::collections::HashMap;
use std::rc::Rc;

use code_log::{Budget, Followed, Follower, Source, Update};

use crate::bodies::{Bodies, BodyKey};
use crate::body::{Body, name_hash};
use crate::images::ImagesOfProcess;

/// A log, and what was read of it.
#[derive(Debug)]
pub(crate) struct Log<S> {
    pub(crate) source: S,
    follower: Follower,
    until: Option<u64>,
    /// Distinguishes it from all other sources there ever were.
    number: u64,
}

/// A code that may be the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) code: Followed,
    /// The index of its log.
    pub(crate) log: usize,
}

/// The codes at an address: the last one that was loaded by a time, and the first one after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) last: Option<Candidate>,
    pub(crate) next: Option<Candidate>,
}

impl Candidates {
    fn consider(&mut self, candidate: Candidate, time: u64) {
        let loaded = candidate.code.loaded;
        if loaded <= time {
            if self.last.is_none_or(|last| last.code.loaded <= loaded) {
                self.last = Some(candidate);
            }
        } else if self.next.is_none_or(|next| loaded < next.code.loaded) {
            self.next = Some(candidate);
        }
    }
}

impl<S: Source> Log<S> {
    pub(crate) fn new(source: S, until: Option<u64>, number: u64) -> Self {
        Self { source, follower: Follower::new(until), until, number }
    }

    /// Whether its codes belong to the process up to this time. The start of a process, where that is the limit, is known to some
    /// hundredths of a second only.
    pub(crate) fn is_until(&self, until: Option<u64>) -> bool {
        match (self.until, until) {
            (Some(known), Some(until)) => known.abs_diff(until) < 50_000_000,
            (known, until) => known == until,
        }
    }

    /// Reads what has changed.
    pub(crate) fn update(&mut self, budget: Budget) -> Result<Update, code_log::Error> {
        self.follower.update(&self.source, budget, name_hash)
    }

    pub(crate) fn codes(&self) -> u64 {
        self.follower.len()
    }

    pub(crate) fn memory(&self) -> u64 {
        self.follower.memory()
    }

    /// Whether times in it are not of `CLOCK_MONOTONIC`, so that only the order of its codes is known.
    pub(crate) fn has_other_clock(&self) -> bool {
        self.follower.head().is_some_and(|head| head.arch_timestamp)
    }

    /// Finds the codes at addresses, which are sorted, each with a time. It passes over all codes once: a batch is answered from
    /// one reading, and nothing needs to be kept sorted while code changes. `work` is how many codes may still be considered:
    /// codes that overlap many others cost more than they should. Returns whether that was enough.
    pub(crate) fn find(
        &self,
        index: usize,
        addresses: &[(u64, u64)],
        found: &mut [Candidates],
        work: &mut u64,
    ) -> bool {
        let has_other_clock = self.has_other_clock();
        for code in self.follower.codes() {
            let end = code.address.saturating_add(code.size.into());
            let first = addresses.partition_point(|(address, _)| *address < code.address);
            let rest = addresses.get(first..).unwrap_or_default();
            let found = found.get_mut(first..).unwrap_or_default();
            for ((address, time), found) in rest.iter().zip(found) {
                if *address >= end {
                    break;
                }
                let Some(left) = work.checked_sub(1) else { return false };
                *work = left;
                let time = if has_other_clock { u64::MAX } else { *time };
                found.consider(Candidate { code: *code, log: index }, time);
            }
        }
        true
    }

    /// For each of these codes of one log, how many codes of its name were loaded up to it.
    fn generations(&self, codes: &[Followed]) -> Vec<u64> {
        let place = |code: &Followed| (code.loaded, code.at());
        let mut by_name: HashMap<u64, Vec<usize>> = HashMap::new();
        for (number, code) in codes.iter().enumerate() {
            by_name.entry(code.tag).or_default().push(number);
        }
        let at = |number: &usize| codes.get(*number).map(place);
        for numbers in by_name.values_mut() {
            numbers.sort_by_key(at);
        }
        // How many codes come before each of them, but not before the one in front of it.
        let mut counts = vec![0; codes.len()];
        for other in self.follower.codes() {
            let Some(numbers) = by_name.get(&other.tag) else { continue };
            let first = numbers.partition_point(|number| at(number) < Some(place(other)));
            if let Some(count) = numbers.get(first).and_then(|number| counts.get_mut(*number)) {
                *count += 1;
            }
        }
        for numbers in by_name.values() {
            let mut sum = 0;
            for number in numbers {
                let Some(count) = counts.get_mut(*number) else { continue };
                sum += *count;
                *count = sum;
            }
        }
        counts
    }

    /// When a code was unloaded; 0 while it is loaded. `None` if its description is gone.
    pub(crate) fn died(&self, code: &Followed) -> Option<u64> {
        self.follower.died(&self.source, code).ok().flatten()
    }

    /// The descriptions of codes, from `bodies` or from the log. `None` for those that are gone or too large.
    pub(crate) fn bodies(
        &self,
        codes: &[Followed],
        most: usize,
        bodies: &mut Bodies,
        images: &mut ImagesOfProcess<'_>,
    ) -> Vec<Option<Rc<Body>>> {
        let key = |code: &Followed| -> BodyKey { (self.number, code.at(), code.loaded) };
        let mut all: Vec<_> = codes.iter().map(|code| bodies.get(key(code))).collect();
        let is_read = |body: &Rc<Body>| images.is_settled(body.image);
        let missing = codes.iter().zip(&all).enumerate();
        let missing = missing.filter(|(_, (_, body))| !body.as_ref().is_some_and(is_read));
        let (indices, missing): (Vec<usize>, Vec<Followed>) =
            missing.map(|(index, (code, _))| (index, *code)).unzip();
        if missing.is_empty() {
            return all;
        }
        let generations = self.generations(&missing);
        for ((index, code), generation) in indices.into_iter().zip(&missing).zip(generations) {
            let dump = self.follower.code(&self.source, code, most).ok().flatten();
            let body = dump.and_then(|dump| {
                let image = images.make(&dump);
                Body::read(&dump, generation, image)
            });
            // Without an image it is known even when it is no longer in the log.
            if let (Some(body), Some(place)) = (body, all.get_mut(index)) {
                let body = Rc::new(body);
                bodies.put(key(code), Rc::clone(&body));
                *place = Some(body);
            }
        }
        all
    }
}
