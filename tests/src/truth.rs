//! What the demo JIT says really was where and when.

use std::path::Path;

use serde_json::Value;

use crate::sample::Sample;

/// One code at one address for one span of time.
#[derive(Debug)]
struct Version {
    symbol: String,
    address: u64,
    size: u64,
    loaded: u64,
    died: u64,
    /// Each row's first address and its line, ascending.
    lines: Vec<(u64, u64)>,
}

/// All that a run of the demo JIT compiled.
#[derive(Debug)]
pub struct Truth(Vec<Version>);

impl Truth {
    /// Reads what `demo-jit --truth FILE` wrote.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        Self(text.lines().map(version).collect())
    }

    /// Checks every sample that ran in a code of the demo, and says how many there were. `srcline` is compared
    /// where the samples were read with it.
    ///
    /// # Panics
    /// On the first one with another symbol, offset or line, or if none ran there.
    pub fn expect(&self, samples: &[Sample], with_lines: bool) -> usize {
        let mut checked = 0;
        for sample in samples {
            let Some(version) = self.at(sample.ip, sample.time) else { continue };
            let symbol = sample.symbol.as_ref();
            assert_eq!(
                symbol.map(|symbol| (symbol.name.as_str(), symbol.offset)),
                Some((version.symbol.as_str(), Some(sample.ip - version.address))),
                "{sample}"
            );
            if with_lines {
                let row = version.lines.iter().rfind(|(address, _)| *address <= sample.ip);
                let expected = row.map(|(_, line)| format!("demo.scribe:{line}"));
                let shown = sample.srcline.as_deref().and_then(|line| line.split(' ').next());
                assert_eq!(shown, expected.as_deref(), "{sample}");
            }
            checked += 1;
        }
        assert!(checked > 50, "only {checked} of {} samples ran in the demo's code", samples.len());
        checked
    }

    /// Whether a sample ran in a code of the demo.
    pub fn covers(&self, ip: u64, time: u64) -> bool {
        self.at(ip, time).is_some()
    }

    /// How many different symbols were at one address, at most.
    pub fn most_versions_at_one_address(&self) -> usize {
        let at = |address| self.0.iter().filter(|version| version.address == address).count();
        self.0.iter().map(|version| at(version.address)).max().unwrap_or(0)
    }

    fn at(&self, ip: u64, time: u64) -> Option<&Version> {
        self.0.iter().find(|version| {
            ip.checked_sub(version.address).is_some_and(|offset| offset < version.size)
                && (version.loaded..version.died).contains(&time)
        })
    }
}

fn version(line: &str) -> Version {
    let json: Value = serde_json::from_str(line).expect("a JSON object a line");
    let number = |name: &str| json[name].as_u64().unwrap_or_else(|| panic!("no {name}: {line}"));
    let mut lines: Vec<(u64, u64)> = json["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|row| (row["address"].as_u64().expect("address"), row["line"].as_u64().expect("line")))
        .collect();
    lines.sort_unstable();
    Version {
        symbol: json["symbol"].as_str().expect("a symbol").to_owned(),
        address: number("address"),
        size: number("size"),
        loaded: number("loaded"),
        died: json["died"].as_u64().unwrap_or(u64::MAX),
        lines,
    }
}
