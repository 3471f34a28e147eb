//! A line of JSON for each window: docs/look.md describes the fields.

use profile::Activities;
use serde::Serialize;

use super::table::{Span, Table};
use super::window::Windows;
use crate::Result;
use crate::sort::Sort;
use crate::text::Out;

/// The version of the fields: it grows when one is removed or changes its meaning.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    schema_version: u32,
    window: u64,
    samples: u64,
    jitted: u64,
    activities: Activities,
    functions: Vec<Function<'a>>,
    compiled: Vec<Compiled>,
    messages: &'a [String],
}

#[derive(Serialize)]
struct Function<'a> {
    name: String,
    file: String,
    line: u32,
    column: u32,
    kind: &'a str,
    samples: u64,
    inclusive: u64,
    tiers: Vec<Tier>,
}

#[derive(Serialize)]
struct Tier {
    tier: String,
    samples: u64,
}

#[derive(Serialize)]
struct Compiled {
    name: String,
    tier: String,
    size: u64,
}

/// Prints windows until there are no more, or `count` of them.
pub fn print(windows: Windows, count: Option<u64>) -> Result<()> {
    Table::of_each(windows, count, |table| {
        let mut out = Out::new();
        out.json(&line(table))?;
        out.finish()
    })
}

fn line(table: &Table) -> Line<'_> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let functions = table.functions(Span::Last, Sort::Own).into_iter();
    let samples = table.samples(Span::Last);
    Line {
        schema_version: SCHEMA,
        window: table.windows,
        samples: samples.all,
        jitted: samples.jitted,
        activities: samples.activities,
        functions: functions
            .map(|(function, counts)| Function {
                name: text(&function.name),
                file: text(&function.file),
                line: function.line,
                column: function.column,
                kind: function.kind.name(),
                samples: counts.own,
                inclusive: counts.total,
                tiers: counts
                    .tiers
                    .iter()
                    .map(|(tier, &samples)| Tier { tier: text(tier), samples })
                    .collect(),
            })
            .collect(),
        compiled: table
            .compiled
            .iter()
            .take(table.compiled_now)
            .map(|code| Compiled {
                name: text(&code.name),
                tier: text(&code.tier),
                size: code.size,
            })
            .collect(),
        messages: &table.messages,
    }
}
