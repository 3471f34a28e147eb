//! The functions with most samples.

use std::collections::{HashMap, HashSet};

use code_timeline::CodeId;
use rustc_hash::FxBuildHasher;

use super::attribution::SampleAttribution;
use super::code_table::{CodeTable, Origin};
use super::report::TopFunction;
use crate::Result;

/// How many samples were taken in each code.
#[derive(Debug)]
pub struct Hits(Vec<u64>);

impl Hits {
    /// Counts them by code, of which there are `codes`.
    pub fn count(attribution: &SampleAttribution, codes: usize) -> Self {
        let mut by_code = vec![0; codes];
        for (code, hits) in attribution.hits() {
            by_code[code.index()] += hits;
        }
        Self(by_code)
    }

    /// How many in this one.
    pub fn in_code(&self, code: CodeId) -> u64 {
        self.0.get(code.index()).copied().unwrap_or(0)
    }

    fn codes(&self) -> impl Iterator<Item = CodeId> {
        let hit = self.0.iter().enumerate().filter(|&(_, &hits)| hits > 0);
        hit.map(|(number, _)| CodeId(u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

/// Gathers names of code that was hit: those that come by while images are written, and the rest.
#[derive(Debug, Default)]
pub struct Top {
    named: HashSet<CodeId, FxBuildHasher>,
    hits: HashMap<Vec<u8>, Function>,
}

/// All code of one name.
#[derive(Debug)]
struct Function {
    /// Samples in it.
    samples: u64,
    /// One of its codes.
    code: CodeId,
}

impl Top {
    /// Takes the name of a code; once more changes nothing.
    pub fn name(&mut self, code: CodeId, name: Vec<u8>, hits: &Hits) {
        if self.named.insert(code) {
            self.hits.entry(name).or_insert(Function { samples: 0, code }).samples +=
                hits.in_code(code);
        }
    }

    /// The first, when all names are known.
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
            has_code: matches!(table.history.code(function.code).origin, Origin::Dump(_)),
        });
        Ok(functions.collect())
    }
}
