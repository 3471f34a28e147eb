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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::PlainFiles;

    /// The logs of these texts.
    fn logs(texts: &[String]) -> LoggedCodes {
        let folder = tempfile::tempdir().unwrap();
        let written = texts.iter().enumerate().map(|(number, text)| {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, text).unwrap();
            (path, None)
        });
        let written: Vec<_> = written.collect();
        let mut warnings = Vec::new();
        let logs = LoggedCodes::read(&written, &PlainFiles, &mut warnings);
        assert_eq!(warnings, []);
        logs
    }

    fn code(time_us: u64, address: u64, size: u64) -> String {
        format!(
            "code-creation,JS,13,{time_us},{address:#x},{size},f /a.js:1:2,0x18,*\n\
             code-source-info,{address:#x},1,0,9,C0O1,,\n"
        )
    }

    #[test]
    fn the_nearest_code_in_time_is_found_in_the_logs_of_all_isolates() {
        // The second isolate opened its log 7 s after the first; both used 0x1000.
        let first = [code(10, 0x1000, 8), code(20, 0x2000, 8), code(9_000_000, 0x1000, 8)];
        let second = [code(5, 0x3000, 8), code(15, 0x1000, 8), code(25, 0x1000, 16)];
        let logs = logs(&[first.concat(), second.concat()]);
        let (opened, later) = (40_000_000_000_000, 40_007_000_000_000);
        let at = |opened: u64, time_us: u64| opened + time_us * 1000 + 700;
        let loads = [
            (0x1000, 8, at(opened, 10)),
            (0x2000, 8, at(opened, 20)),
            (0x3000, 8, at(later, 5)),
            (0x1000, 8, at(later, 15)),
            (0x1000, 16, at(later, 25)),
            (0x1000, 8, at(opened, 9_000_000)),
            // A code that no log has, and one that none has at this time.
            (0x1000, 9, at(opened, 10)),
            (0x2000, 8, at(opened, 60_000_000)),
        ];
        let mut matching = Matching::new(&logs);
        for (number, (address, size, time)) in (0..).zip(loads) {
            matching.load(number, address, size, time);
        }
        let found = matching.finish();
        let expected = [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (5, 2)];
        assert_eq!(found, expected.map(|(load, id)| (load, InfoId(id))));
    }

    #[test]
    fn without_logs_nothing_matches() {
        let logs = logs(&["v8-version,11,3,244,8,-node.38,0\n".to_owned()]);
        let mut matching = Matching::new(&logs);
        matching.load(0, 0x1000, 8, 5);
        assert_eq!(matching.finish(), []);
    }
}
