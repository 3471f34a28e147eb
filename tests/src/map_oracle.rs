//! The name of an address according to a perf map, by one rule: the last line that covers it wins.
//!
//! Written for obviousness, not speed, and apart from the crate that is tested with it.

use std::path::Path;

use crate::sample::{Sample, Symbol};

/// The lines of a perf map, in the order of the file.
#[derive(Debug)]
pub struct MapOracle {
    lines: Vec<(u64, u64, String)>,
}

impl MapOracle {
    /// Reads a map that a real runtime wrote.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read(path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let hex = |field: &str| {
            u64::from_str_radix(field.trim_start_matches("0x"), 16)
                .unwrap_or_else(|_| panic!("{field:?} in {} is not hexadecimal", path.display()))
        };
        let lines = String::from_utf8_lossy(&text)
            .lines()
            .map(|line| {
                let mut fields = line.splitn(3, ' ');
                let mut next = || fields.next().unwrap_or_else(|| panic!("short line {line:?}"));
                (hex(next()), hex(next()), next().to_owned())
            })
            .collect();
        Self { lines }
    }

    /// The code at an address, by the last line that covers it.
    pub fn at(&self, ip: u64) -> Option<Symbol> {
        self.lines
            .iter()
            .rev()
            .find(|(start, size, _)| ip.checked_sub(*start).is_some_and(|offset| offset < *size))
            .map(|(start, _, name)| Symbol { name: name.clone(), offset: Some(ip - start) })
    }
}

/// What became of the samples in anonymous memory.
#[derive(Debug, PartialEq, Eq)]
pub struct MapTally {
    /// Named by the map.
    pub named: usize,
    /// Covered by no line.
    pub unknown: usize,
    /// Where stock perf took another line than the last one.
    pub perf_wrong: usize,
}

/// Checks that each sample in anonymous memory got the symbol of the last line that covers it, or none where
/// there is no such line, and that native code was left alone.
pub fn expect_map_applied(before: &[Sample], after: &[Sample], map: &MapOracle) -> MapTally {
    assert_eq!(before.len(), after.len(), "samples before and after");
    let mut tally = MapTally { named: 0, unknown: 0, perf_wrong: 0 };
    let mut wrong: Vec<(&Sample, Option<Symbol>)> = Vec::new();
    for (before, after) in before.iter().zip(after) {
        assert_eq!((before.time, before.tid, before.ip), (after.time, after.tid, after.ip));
        if !before.in_anonymous_memory() {
            assert_eq!(before.dso, after.dso, "native code is left alone: {after}");
            continue;
        }
        let expected = map.at(after.ip);
        match &expected {
            Some(symbol) => {
                tally.named += 1;
                tally.perf_wrong += usize::from(before.name() != Some(&symbol.name));
            }
            None => tally.unknown += 1,
        }
        if after.announced() != expected.as_ref() {
            wrong.push((after, expected));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} samples are not named by the last line that covers them, the first ones: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
    tally
}
