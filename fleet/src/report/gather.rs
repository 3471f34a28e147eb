//! The rows of `samples` that are drawn.

use std::collections::HashMap;
use std::hash::BuildHasher;

use futures::StreamExt as _;
use rustc_hash::FxBuildHasher;

use super::draw::Draw;
use crate::batch::{Rows, Texts};
use crate::error::Result;
use crate::printed;
use crate::tables::Tables;

/// The number of a text.
pub type TextId = u32;

/// A row of `samples`. They are sorted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The beginning of the window, in microseconds since 1970.
    pub window: i64,
    pub service: TextId,
    pub version: TextId,
    pub host: TextId,
    pub stack: i64,
    pub code: i64,
    pub function: i64,
    pub generation: i32,
    pub tier: TextId,
    pub event: TextId,
    /// The number of samples that were drawn.
    pub drawn: u64,
}

/// The rows, and what they refer to.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Sorted.
    pub rows: Vec<Row>,
    /// In the order of their numbers, which is that of the alphabet.
    pub texts: Vec<String>,
    /// The hosts that have any.
    pub hosts: usize,
}

impl Gathered {
    /// Reads the table once.
    pub async fn read(tables: &Tables, draw: Draw) -> Result<Self> {
        let sql = "SELECT window_start, service, version, host, stack_key, code_key, function_key, \
                   generation, tier, event, sample_count FROM samples";
        let mut stream = tables.ask(sql).await?.execute_stream().await.map_err(tables.failed())?;
        let mut texts = Interned::default();
        let mut hosts = Interned::default();
        let mut rows = Vec::new();
        let progress = printed::progress("rows");
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(tables.failed())?;
            progress.inc(batch.num_rows() as u64);
            let columns = Rows(&batch);
            let window = columns.times("window_start")?;
            let [service, version, host] =
                [columns.texts("service")?, columns.texts("version")?, columns.texts("host")?];
            let [tier, event] = [columns.texts("tier")?, columns.texts("event")?];
            let [stack, code, function] = ["stack_key", "code_key", "function_key"]
                .map(|name| columns.numbers(name).map(|numbers| numbers.values()));
            let (stack, code, function) = (stack?, code?, function?);
            let generation = columns.small("generation")?.values();
            let counts = columns.numbers("sample_count")?.values();
            for (row, count) in counts.iter().enumerate() {
                let host = hosts.number(&host, row);
                let Ok(count) = u64::try_from(*count) else { continue };
                let place = (hosts.hash(host), window[row], stack[row], code[row], function[row]);
                let drawn = draw.of(count, (place, generation[row]));
                if drawn == 0 {
                    continue;
                }
                rows.push(Row {
                    window: window[row],
                    service: texts.number(&service, row),
                    version: texts.number(&version, row),
                    host: texts.number_of(hosts.text(host)),
                    stack: stack[row],
                    code: code[row],
                    function: function[row],
                    generation: generation[row],
                    tier: texts.number(&tier, row),
                    event: texts.number(&event, row),
                    drawn,
                });
            }
        }
        progress.finish_and_clear();
        let (texts, new) = texts.sorted();
        for row in &mut rows {
            let Row { service, version, host, tier, event, .. } = row;
            for text in [service, version, host, tier, event] {
                *text = new[*text as usize];
            }
        }
        rows.sort_unstable();
        Ok(Self { rows, texts, hosts: hosts.texts.len() })
    }

    /// A text.
    pub fn text(&self, id: TextId) -> &str {
        &self.texts[id as usize]
    }
}

/// Texts and their numbers.
#[derive(Debug, Default)]
struct Interned {
    numbers: HashMap<String, TextId, FxBuildHasher>,
    texts: Vec<String>,
    hashes: Vec<u64>,
    /// The last one: neighbouring rows have the same hosts and services.
    last: TextId,
}

impl Interned {
    fn number(&mut self, texts: &Texts<'_>, row: usize) -> TextId {
        self.number_of(texts.get(row))
    }

    fn number_of(&mut self, text: &str) -> TextId {
        if self.texts.get(self.last as usize).is_some_and(|last| last == text) {
            return self.last;
        }
        self.last = match self.numbers.get(text) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
                self.numbers.insert(text.into(), number);
                self.texts.push(text.into());
                self.hashes.push(FxBuildHasher.hash_one(text));
                number
            }
        };
        self.last
    }

    fn text(&self, number: TextId) -> &str {
        &self.texts[number as usize]
    }

    fn hash(&self, number: TextId) -> u64 {
        self.hashes[number as usize]
    }

    /// The texts in the order of the alphabet, and the new number of each.
    fn sorted(self) -> (Vec<String>, Vec<TextId>) {
        let mut order: Vec<usize> = (0..self.texts.len()).collect();
        order.sort_by(|&a, &b| self.texts[a].cmp(&self.texts[b]));
        let mut new = vec![0; order.len()];
        for (number, &old) in (0..).zip(&order) {
            new[old] = number;
        }
        (order.into_iter().map(|old| self.texts[old].clone()).collect(), new)
    }
}
