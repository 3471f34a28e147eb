//! The functions with the most samples.

use std::collections::{HashMap, HashSet};

use code_timeline::CodeId;
use rustc_hash::FxBuildHasher;

use super::attribution::SampleAttribution;
use super::code_table::{CodeTable, Origin};
use super::report::TopFunction;
use crate::Result;

/// Number of samples in each code.
#[derive(Debug)]
pub struct Hits(Vec<u64>);

impl Hits {
    /// Counts the samples by code, for `codes` codes.
    pub fn count(attribution: &SampleAttribution, codes: usize) -> Self {
        let mut by_code = vec![0; codes];
        for (code, hits) in attribution.hits() {
            by_code[code.index()] += hits;
        }
        Self(by_code)
    }

    /// The number of samples in a code.
    pub fn in_code(&self, code: CodeId) -> u64 {
        self.0.get(code.index()).copied().unwrap_or(0)
    }

    fn codes(&self) -> impl Iterator<Item = CodeId> {
        let hit = self.0.iter().enumerate().filter(|&(_, &hits)| hits > 0);
        hit.map(|(number, _)| CodeId(u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

/// Collects the names of codes with samples: some while images are written, the others afterwards.
#[derive(Debug, Default)]
pub struct Top {
    named: HashSet<CodeId, FxBuildHasher>,
    hits: HashMap<Vec<u8>, Function>,
}

/// All codes with one name.
#[derive(Debug)]
struct Function {
    /// Number of samples in them.
    samples: u64,
    /// One of the codes.
    code: CodeId,
}

impl Top {
    /// Records the name of a code. A second call for the same code has no effect.
    pub fn name(&mut self, code: CodeId, name: Vec<u8>, hits: &Hits) {
        if self.named.insert(code) {
            self.hits.entry(name).or_insert(Function { samples: 0, code }).samples +=
                hits.in_code(code);
        }
    }

    /// The first functions, after all names were recorded.
    pub fn finish(mut self, hits: &Hits, table: &CodeTable<'_>) -> Result<Vec<TopFunction>> {
        const TOP: usize = 10;
        let mut reader = table.reader();
        for id in hits.codes() {
            if self.named.contains(&id) {
                continue;
            }
            let code = table.history.code(id);
            let name = match code.origin {
                Origin::Map(name) => name,
                Origin::Inferred(_) => table.inferred_name(id),
                Origin::Dump(_) => reader.load(code)?.map(|load| load.name).unwrap_or_default(),
            };
            self.name(id, name.to_vec(), hits);
        }
        let mut sorted: Vec<(Vec<u8>, Function)> = self.hits.into_iter().collect();
        sorted.sort_unstable_by(|(a, more), (b, less)| {
            less.samples.cmp(&more.samples).then(a.cmp(b))
        });
        let functions = sorted.into_iter().take(TOP).map(|(name, function)| TopFunction {
            name: String::from_utf8_lossy(&name).into_owned(),
            symbol: code_image::symbol_name(&name).to_vec(),
            samples: function.samples,
            has_code: table.has_bytes(function.code),
        });
        Ok(functions.collect())
    }
}
