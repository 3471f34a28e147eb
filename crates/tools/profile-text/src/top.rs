//! The functions with the most samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use profile::{FunctionId, Profile, Tiers, Totals};
use serde::Serialize;

use crate::figures::{grouped, is_at_least, percent};
use crate::function_info::{FunctionInfo, lossy};
use crate::line::{Line, Style};

/// The functions with the most samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Top {
    /// Number of samples.
    pub samples: u64,
    /// The functions.
    pub functions: Vec<TopRow>,
    /// Number of functions that are left out, as they have too few samples.
    pub left_out: usize,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopRow {
    /// What it is.
    #[serde(flatten)]
    pub function: FunctionInfo,
    /// Samples in it.
    pub samples: u64,
    /// Samples in it or in what it called; a recursive function counts once a sample.
    pub inclusive: u64,
    /// The number of its compilations that are known.
    pub generations: u64,
    /// The tiers that its samples are in, most first; empty if none is known.
    pub tiers: Vec<TierSamples>,
}

/// A tier of a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TierSamples {
    /// Its name.
    pub tier: String,
    /// Samples of the function in code of it: its own, or that of a function that it was inlined into.
    pub samples: u64,
}

/// By what functions are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By samples in them.
    #[default]
    Own,
    /// By samples in them or in what they called.
    Total,
    /// By name.
    Name,
}

impl Top {
    /// The functions that have at least this part of the samples, in percent.
    #[must_use]
    pub fn of(profile: &Profile, totals: &Totals, sort: Sort, least: f64) -> Self {
        let mut generations: BTreeMap<FunctionId, u64> = BTreeMap::new();
        for code in profile.codes().iter().filter(|code| code.process.is_some()) {
            let count: &mut u64 = generations.entry(code.function).or_default();
            *count = count.saturating_add(1);
        }
        let tiers = Tiers::of(profile, totals);
        let mut sampled = totals.functions(profile);
        match sort {
            Sort::Own => {}
            Sort::Total => sampled.sort_by_key(|(_, count)| Reverse((count.total, count.own))),
            Sort::Name => {
                sampled.sort_by(|(a, _), (b, _)| {
                    profile.function_name(*a).cmp(profile.function_name(*b))
                });
            }
        }
        let all = sampled.len();
        sampled.retain(|(_, count)| {
            let samples = if sort == Sort::Own { count.own } else { count.total };
            is_at_least(samples, totals.samples(), least)
        });
        let row = |(id, count): &(FunctionId, profile::Count)| {
            let spelled =
                |&(tier, samples)| TierSamples { tier: lossy(profile.text(tier)), samples };
            TopRow {
                function: FunctionInfo::of(profile, *id),
                samples: count.own,
                inclusive: count.total,
                generations: generations.get(id).copied().unwrap_or(0),
                tiers: tiers.of_function(*id).iter().map(spelled).collect(),
            }
        };
        let functions: Vec<TopRow> = sampled.iter().map(row).collect();
        let left_out = all.saturating_sub(functions.len());
        Self { samples: totals.samples(), functions, left_out }
    }

    /// As a table.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let width = self.functions.iter().map(|row| row.tier_text().chars().count()).max();
        let width = width.unwrap_or(0).clamp(4, 24);
        let heading = format!(
            " {:>7}  {:>11}  {:>7}  {:>11}  {:<width$}  function",
            "self %", "self", "total %", "total", "tier"
        );
        let mut lines = vec![Line::of(Style::Heading, heading)];
        for row in &self.functions {
            let style = Style::of_share(row.samples, self.samples);
            let own = format!(" {:>7}", percent(row.samples, self.samples));
            let mut line = Line::of(style, own).with(
                Style::Plain,
                format!(
                    "  {:>11}  {:>7}  {:>11}  {:<width$}  {}",
                    grouped(row.samples),
                    percent(row.inclusive, self.samples),
                    grouped(row.inclusive),
                    row.tier_text(),
                    row.function.short_name(),
                ),
            );
            row.function.push_place(&mut line);
            lines.push(line);
        }
        lines.extend(Line::left_out(self.left_out, "function", ""));
        lines
    }
}

impl TopRow {
    /// The tiers in short; what the function is if it has none.
    fn tier_text(&self) -> String {
        match self.tiers.as_slice() {
            [] => format!("[{}]", self.function.kind),
            [only] => only.tier.clone(),
            [first, others @ ..] => format!("{} +{}", first.tier, others.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tier_is_that_of_most_samples() {
        let text = |samples, tiers: &[(&str, u64)]| {
            let spelled =
                |&(tier, samples): &(&str, u64)| TierSamples { tier: tier.into(), samples };
            let tiers = tiers.iter().map(spelled).collect();
            let (name, file, key) = Default::default();
            let function = FunctionInfo {
                name,
                file,
                line: 0,
                column: 0,
                kind: "jitted",
                key,
                shares_line: false,
            };
            TopRow { function, samples, inclusive: samples, generations: 1, tiers }.tier_text()
        };
        assert_eq!(text(10, &[("turbofan", 9), ("sparkplug", 1)]), "turbofan +1");
        assert_eq!(text(30, &[("turbofan", 30)]), "turbofan");
        assert_eq!(text(2, &[]), "[jitted]");
    }
}
