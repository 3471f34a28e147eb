//! Finds which load of a dump is which code of the logs.

use std::collections::HashMap;

use super::logged_codes::{InfoId, LoggedCodes};

/// Both are written when code is created, one directly after the other. A busy machine may run other programs in
/// between.
const NEAR: u64 = 1_000_000_000;

/// A load whose address and size a log has.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    load: u32,
    place: (u64, u64),
    /// In nanoseconds of the dump's clock.
    time: u64,
}

/// Collects the loads of one dump, and finds their codes.
///
/// Addresses are used again, also by other isolates, so the time decides. A log's times count from when it was opened.
/// The distance to the dump's clock is the median of the distances of codes at addresses that were used once.
#[derive(Debug)]
pub struct Matching<'l> {
    logs: &'l LoggedCodes,
    candidates: Vec<Candidate>,
}

impl<'l> Matching<'l> {
    /// No loads.
    pub fn new(logs: &'l LoggedCodes) -> Self {
        Self { logs, candidates: Vec::new() }
    }

    /// Adds a load with this number.
    pub fn load(&mut self, load: u32, address: u64, size: u64, time: u64) {
        if !self.logs.at(address, size).is_empty() {
            self.candidates.push(Candidate { load, place: (address, size), time });
        }
    }

    /// The code of each load for which there is one.
    pub fn finish(self) -> Vec<(u32, InfoId)> {
        let offsets = self.offsets();
        let matched = self.candidates.iter().filter_map(|candidate| {
            let (address, size) = candidate.place;
            let apart = |id: &InfoId| {
                let info = self.logs.info(*id)?;
                let offset = *offsets.get(info.line.log as usize)?.as_ref()?;
                Some((at(info.time_us, offset).abs_diff(i128::from(candidate.time)), *id))
            };
            let nearest = self.logs.at(address, size).iter().filter_map(apart);
            let (apart, id) = nearest.min_by_key(|(apart, _)| *apart)?;
            (apart <= u128::from(NEAR)).then_some((candidate.load, id))
        });
        matched.collect()
    }

    /// By log: what to add to its times, in nanoseconds.
    fn offsets(&self) -> Vec<Option<i128>> {
        let mut loads: HashMap<(u64, u64), (u64, usize)> = HashMap::new();
        for candidate in &self.candidates {
            loads.entry(candidate.place).or_insert((candidate.time, 0)).1 += 1;
        }
        let mut once = vec![Vec::new(); self.logs.logs()];
        let mut often = once.clone();
        for (place, ids) in self.logs.places() {
            let Some(&(time, count)) = loads.get(place) else { continue };
            for info in ids.iter().filter_map(|id| self.logs.info(*id)) {
                let lists = if ids.len() == 1 && count == 1 { &mut once } else { &mut often };
                if let Some(list) = lists.get_mut(info.line.log as usize) {
                    list.push(i128::from(time) - at(info.time_us, 0));
                }
            }
        }
        let median = |list: &mut Vec<i128>| {
            list.sort_unstable();
            list.get(list.len() / 2).copied()
        };
        once.iter_mut()
            .zip(&mut often)
            .map(|(once, often)| median(once).or(median(often)))
            .collect()
    }
}

/// A log's time in nanoseconds of the dump's clock.
fn at(time_us: u64, offset: i128) -> i128 {
    i128::from(time_us) * 1000 + offset
}
