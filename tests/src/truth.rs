//! The demo JIT's own record of what was where and when.

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
    /// Ascending.
    lines: Vec<Row>,
}

/// From an address on.
#[derive(Debug)]
struct Row {
    address: u64,
    line: u64,
    /// The inlined calls around, from the innermost outward: the callee, and the line of the call.
    inlined: Vec<(String, u64)>,
}

impl Version {
    fn holds(&self, ip: u64) -> bool {
        ip.checked_sub(self.address).is_some_and(|offset| offset < self.size)
    }

    fn row(&self, ip: u64) -> Option<&Row> {
        self.lines.iter().rfind(|row| row.address <= ip)
    }
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
                let row = version.row(sample.ip);
                let expected = row.map(|row| format!("demo.scribe:{}", row.line));
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

    /// Whether different codes were at an address, at different times.
    ///
    /// perf's libunwind remembers by address how a frame is unwound, and is told of no new mapping: now and then it
    /// takes the rule of the code that was there before.
    pub fn is_reused(&self, ip: u64) -> bool {
        self.0.iter().filter(|version| version.holds(ip)).count() > 1
    }

    /// The functions and lines at an address, from the innermost outward, the last one that of the code itself.
    /// `None` if no code of the demo ran there then.
    pub fn inline_chain(&self, ip: u64, time: u64) -> Option<Vec<(String, u64)>> {
        let version = self.at(ip, time)?;
        let row = version.row(ip)?;
        let mut chain = Vec::new();
        let mut line = row.line;
        for (callee, call) in &row.inlined {
            chain.push((callee.clone(), line));
            line = *call;
        }
        chain.push((version.symbol.clone(), line));
        Some(chain)
    }

    /// How many different symbols were at one address, at most.
    pub fn most_versions_at_one_address(&self) -> usize {
        let at = |address| self.0.iter().filter(|version| version.address == address).count();
        self.0.iter().map(|version| at(version.address)).max().unwrap_or(0)
    }

    /// The address and size of each compilation with this symbol.
    pub fn places_of(&self, symbol: &str) -> Vec<(u64, u64)> {
        let of_symbol = self.0.iter().filter(|version| version.symbol == symbol);
        of_symbol.map(|version| (version.address, version.size)).collect()
    }

    fn at(&self, ip: u64, time: u64) -> Option<&Version> {
        self.0
            .iter()
            .find(|version| version.holds(ip) && (version.loaded..version.died).contains(&time))
    }
}

fn version(line: &str) -> Version {
    let json: Value = serde_json::from_str(line).expect("a JSON object a line");
    let number = |name: &str| json[name].as_u64().unwrap_or_else(|| panic!("no {name}: {line}"));
    let lines = json["lines"].as_array().expect("lines");
    let mut lines: Vec<Row> = lines.iter().map(row).collect();
    lines.sort_by_key(|row| row.address);
    Version {
        symbol: json["symbol"].as_str().expect("a symbol").to_owned(),
        address: number("address"),
        size: number("size"),
        loaded: number("loaded"),
        died: json["died"].as_u64().unwrap_or(u64::MAX),
        lines,
    }
}

fn row(json: &Value) -> Row {
    let number = |json: &Value, name: &str| json[name].as_u64().expect("a number");
    let call =
        |call: &Value| (call["callee"].as_str().expect("a name").to_owned(), number(call, "line"));
    Row {
        address: number(json, "address"),
        line: number(json, "line"),
        inlined: json["inlined"].as_array().expect("inlined calls").iter().map(call).collect(),
    }
}
