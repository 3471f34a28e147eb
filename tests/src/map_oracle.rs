//! What a perf map says of an address, by the rule and nothing else: the last line that covers it wins.
//!
//! Written for obviousness, not speed, and apart from the crate that is tested with it.

use std::path::Path;

use crate::sample::Symbol;

/// The lines of a perf map, in the order of the file.
#[derive(Debug)]
pub struct MapOracle {
    lines: Vec<(u64, u64, String)>,
}

impl MapOracle {
    /// Reads a map that a real runtime wrote.
    ///
    /// # Panics
    /// On a line that is not `START SIZE NAME`.
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
