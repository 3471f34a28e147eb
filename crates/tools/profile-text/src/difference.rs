//! Two recordings, function by function.

use profile::significance::SIGNIFICANT;
use profile::{Activities, Compared, ComparedFunction, Comparison, Measure, Profile, SharedLines};
use serde::Serialize;

use crate::activity_text::compared_activities_text;
use crate::figures::{counted, grouped, percent};
use crate::function_info::FunctionInfo;
use crate::line::{Line, Style};

/// Two recordings, function by function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Samples in the first recording.
    pub samples_before: u64,
    /// Samples in the second recording.
    pub samples_after: u64,
    /// Samples in each recording of the first side.
    pub runs_before: Vec<u64>,
    /// Samples in each recording of the second side.
    pub runs_after: Vec<u64>,
    /// What was done in the samples of the first side.
    pub activities_before: Activities,
    /// The same of the second side.
    pub activities_after: Activities,
    /// What is compared: `self` or `inclusive`.
    pub compared: &'static str,
    /// With what: `share` of all samples, or `time`.
    pub measure: &'static str,
    /// The functions, those that changed most first.
    pub functions: Vec<DifferentFunction>,
}

/// A function in both recordings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferentFunction {
    /// The function, as it is in the second recording, or in the first if it is not there.
    #[serde(flatten)]
    pub function: FunctionInfo,
    /// Samples that are compared, in the first recording.
    pub before: u64,
    /// Samples that are compared, in the second recording.
    pub after: u64,
    /// Of these, the samples in each recording of the first side.
    pub runs_before: Vec<u64>,
    /// The same of the second side.
    pub runs_after: Vec<u64>,
    /// The change: of the share, in percentage points, or in samples of the second side.
    pub change: f64,
    /// The probability of such a difference by chance.
    pub by_chance: f64,
    /// `more`, `less`, or `noise` if it may be chance.
    pub verdict: &'static str,
}

impl Difference {
    /// What a comparison of two profiles says.
    #[must_use]
    pub fn of(
        profiles: [&Profile; 2],
        activities: [Activities; 2],
        comparison: &Comparison,
        compared: Compared,
        measure: Measure,
    ) -> Self {
        let row = |row: &ComparedFunction| {
            let [before, after] = row.samples(compared);
            let change = measure.change([before, after], comparison.samples);
            let [in_before, in_after] = row.function;
            let [profile_before, profile_after] = profiles;
            let function = match (in_after, in_before) {
                (Some(function), _) => FunctionInfo::of(profile_after, function),
                (None, Some(function)) => FunctionInfo::of(profile_before, function),
                (None, None) => return None,
            };
            let verdict = match () {
                () if row.by_chance >= SIGNIFICANT => "noise",
                () if change > 0.0 => "more",
                () => "less",
            };
            let change = match measure {
                Measure::Share => change * 100.0,
                Measure::Time(_) => change,
            };
            let by_chance = row.by_chance;
            let [runs_before, runs_after] = row.runs.clone();
            Some(DifferentFunction {
                function,
                before,
                after,
                runs_before,
                runs_after,
                change,
                by_chance,
                verdict,
            })
        };
        let [samples_before, samples_after] = comparison.samples;
        let [runs_before, runs_after] = comparison.runs.clone();
        let [activities_before, activities_after] = activities;
        let mut functions: Vec<_> = comparison.functions.iter().filter_map(row).collect();
        mark_shared_lines(&mut functions);
        Self {
            samples_before,
            samples_after,
            runs_before,
            runs_after,
            activities_before,
            activities_after,
            compared: match compared {
                Compared::Own => "self",
                Compared::Total => "inclusive",
            },
            measure: match measure {
                Measure::Share => "share",
                Measure::Time(_) => "time",
            },
            functions,
        }
    }

    /// As a table, with those that may be chance if `all`.
    #[must_use]
    pub fn lines(&self, all: bool) -> Vec<Line> {
        let is_share = self.measure == "share";
        let mut lines = vec![Line::of(
            Style::Plain,
            format!(
                "before: {}; after: {}",
                side(self.samples_before, &self.runs_before),
                side(self.samples_after, &self.runs_after),
            ),
        )];
        let activities = compared_activities_text(
            &[self.activities_before, self.activities_after],
            [self.samples_before, self.samples_after],
        );
        lines.extend(activities.map(|text| Line::of(Style::Plain, text)));
        let shown: Vec<_> =
            self.functions.iter().filter(|row| all || row.verdict != "noise").collect();
        let noise = self.functions.len().saturating_sub(shown.len());
        if !shown.is_empty() {
            lines.push(Line::default());
            let change = if is_share { "points" } else { "samples" };
            let heading = format!(
                " {change:>9}  {:>8}  {:>8}  {:>10}  {:>10}  {:>9}  {:<7}  function",
                "before %", "after %", "before", "after", "by chance", "change"
            );
            lines.push(Line::of(Style::Heading, heading));
        }
        for row in shown {
            let style = match row.verdict {
                "more" => Style::Hot,
                "less" => Style::Cool,
                _ => Style::Faint,
            };
            let change = match is_share {
                true => format!("{:+.2}", row.change),
                false => format!("{:+.0}", row.change),
            };
            let verdict = match (row.verdict, row.before, row.after) {
                ("more", 0, _) => "new",
                ("less", _, 0) => "gone",
                (verdict, _, _) => verdict,
            };
            let mut line = Line::of(style, format!(" {change:>9}")).with(
                Style::Plain,
                format!(
                    "  {:>8}  {:>8}  {:>10}  {:>10}  {:>9}  ",
                    percent(row.before, self.samples_before),
                    percent(row.after, self.samples_after),
                    grouped(row.before),
                    grouped(row.after),
                    probability(row.by_chance),
                ),
            );
            line.push(style, format!("{verdict:<7}"));
            line.push(Style::Plain, format!("  {}", row.function.short_name()));
            row.function.push_place(&mut line);
            lines.push(line);
        }
        lines.push(Line::default());
        lines.push(Line::of(
            Style::Faint,
            match (all, noise) {
                (true, _) | (false, 0) => {
                    format!("{} compared", counted(self.functions.len() as u64, "function"))
                }
                (false, noise) => format!(
                    "{} compared; {} differ by no more than chance (--all shows them)",
                    counted(self.functions.len() as u64, "function"),
                    grouped(noise as u64),
                ),
            },
        ));
        lines
    }
}

/// Marks functions that share their line with one of the other recording, too.
fn mark_shared_lines(rows: &mut [DifferentFunction]) {
    let place = |function: &FunctionInfo| {
        (function.name.clone(), function.file.clone(), function.line, function.column)
    };
    let shared = SharedLines::of(rows.iter().map(|row| place(&row.function)));
    for FunctionInfo { name, file, line, shares_line, .. } in
        rows.iter_mut().map(|row| &mut row.function)
    {
        *shares_line |= shared.is_shared(name.clone(), file.clone(), *line);
    }
}

/// The samples of a side: `5,000 samples in 3 recordings`.
fn side(samples: u64, runs: &[u64]) -> String {
    let samples = counted(samples, "sample");
    match runs {
        [] | [_] => samples,
        several => format!("{samples} in {}", counted(several.len() as u64, "recording")),
    }
}

/// `0.023`, `<0.001`.
fn probability(probability: f64) -> String {
    match probability {
        small if small < 0.001 => "<0.001".to_owned(),
        other => format!("{other:.3}"),
    }
}
