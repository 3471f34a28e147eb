//! The functions with the most samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use profile::{Code, CodeId, FunctionId, Profile, Totals};
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
    /// Samples in code of it, calls that were inlined into it included.
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
        let mut codes: BTreeMap<FunctionId, Vec<(CodeId, &Code)>> = BTreeMap::new();
        for (id, code) in profile.numbered_codes() {
            codes.entry(code.function).or_default().push((id, code));
        }
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
            let codes = codes.get(id).map(Vec::as_slice).unwrap_or_default();
            let tiers = totals.tiers(profile, codes.iter().map(|(code, _)| *code)).into_iter();
            let spelled =
                |(tier, samples)| TierSamples { tier: lossy(profile.text(tier)), samples };
            TopRow {
                function: FunctionInfo::of(profile, *id),
                samples: count.own,
                inclusive: count.total,
                generations: codes.iter().filter(|(_, code)| code.process.is_some()).count() as u64,
                tiers: tiers.map(spelled).collect(),
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

/// What is shown for the tier of a function of which other functions' code has most samples.
pub const INLINED: &str = "inlined";

/// Whether most samples of a function are in the code of others, into which it was inlined: `own` samples, of which its code has `in_code`.
#[must_use]
pub fn is_mostly_inlined(own: u64, in_code: u64) -> bool {
    in_code < own.saturating_sub(in_code)
}

impl TopRow {
    /// The tiers in short; what the function is if it has none.
    fn tier_text(&self) -> String {
        let in_code = self.tiers.iter().map(|tier| tier.samples).sum();
        match self.tiers.as_slice() {
            [] => format!("[{}]", self.function.kind),
            tiers if is_mostly_inlined(self.samples, in_code) => {
                format!("{INLINED} +{}", tiers.len())
            }
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
            let function = FunctionInfo { name, file, line: 0, column: 0, kind: "jitted", key };
            TopRow { function, samples, inclusive: samples, generations: 1, tiers }.tier_text()
        };
        assert_eq!(text(10, &[("turbofan", 9), ("sparkplug", 1)]), "turbofan +1");
        // One sample in code of its own, and the others in that of a caller.
        assert_eq!(text(1016, &[("sparkplug", 1)]), "inlined +1");
        assert_eq!(text(1016, &[("sparkplug", 1), ("turbofan", 1)]), "inlined +2");
        // What was inlined into it counts for its code.
        assert_eq!(text(2, &[("turbofan", 30)]), "turbofan");
    }
}
