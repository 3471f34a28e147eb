//! A line of JSON for each window: docs/look.md describes the fields.

use serde::Serialize;

use super::args::Order;
use super::table::{Span, Table};
use super::window::Windows;
use crate::Result;
use crate::text::Out;

/// The version of the fields: it grows when one is removed or changes its meaning.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    schema_version: u32,
    window: u64,
    samples: u64,
    jitted: u64,
    functions: Vec<Function<'a>>,
    compiled: Vec<Compiled<'a>>,
    messages: &'a [String],
}

#[derive(Serialize)]
struct Function<'a> {
    name: String,
    file: String,
    line: u32,
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
struct Compiled<'a> {
    name: std::borrow::Cow<'a, str>,
    tier: std::borrow::Cow<'a, str>,
    size: u64,
}

/// Prints windows until there are no more, or `count` of them.
pub fn print(mut windows: Windows, count: Option<u64>) -> Result<()> {
    let mut table = Table::default();
    while count.is_none_or(|count| table.windows < count)
        && let Some(window) = windows.next()?
    {
        table.add(&window);
        let mut out = Out::new();
        out.json(&line(&table))?;
        out.finish()?;
    }
    Ok(())
}

fn line(table: &Table) -> Line<'_> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let functions = table.functions(Span::Last, Order::Own).into_iter();
    let samples = table.samples(Span::Last);
    Line {
        schema_version: SCHEMA,
        window: table.windows,
        samples: samples.all,
        jitted: samples.jitted,
        functions: functions
            .map(|(function, counts)| Function {
                name: text(&function.name),
                file: text(&function.file),
                line: function.line,
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
                name: String::from_utf8_lossy(&code.name),
                tier: String::from_utf8_lossy(&code.tier),
                size: code.size,
            })
            .collect(),
        messages: &table.messages,
    }
}
