//! Two profiles, function by function and call by call, as columns.

use profile::significance::SIGNIFICANT;
use profile::{
    Activities, Compared, ComparedFunction, ComparedNode, ComparedTree, Comparison, Function,
    FunctionKey, FunctionKind, Measure, Profile, Selection, StringId,
};
use serde_json::{Map, Value, json};

use crate::columns::Columns;
use crate::text::{Texts, shown};

/// Two profiles that are compared: the first one is before, the second one after a change.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'p> {
    /// The profiles.
    pub profiles: [&'p Profile; 2],
    /// The samples of each that are compared.
    pub selections: [&'p Selection; 2],
    /// What was done in these samples. Runs that are joined have no processes of their own any more, so it is asked before.
    pub activities: [Activities; 2],
    /// The number of recordings in each: with several, each is a thread ([`profile::Runs`]).
    pub runs: [usize; 2],
    /// What their numbers are compared with.
    pub measure: Measure,
}

/// What is in a file about two profiles that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DifferenceSummary {
    /// Number of samples in each profile.
    pub samples: [u64; 2],
    /// Number of functions that samples end in.
    pub functions: usize,
    /// Number of those that have more or fewer of these samples than chance explains.
    pub changed: usize,
    /// Size of the file.
    pub bytes: u64,
}

/// The comparison as the page reads it. What was found is added to `summary`.
pub fn bytes(difference: &Difference<'_>, summary: &mut DifferenceSummary) -> Vec<u8> {
    let Difference { profiles, selections, runs, measure, .. } = *difference;
    let [before, after] = profiles;
    let [selection_before, selection_after] = selections;
    let compare = |compared| {
        let (mut before, mut after) = (selection_before.of(before), selection_after.of(after));
        Comparison::of_runs(profiles, [&mut before, &mut after], runs, compared, measure)
    };
    let own = compare(Compared::Own);
    let total = compare(Compared::Total);
    let tree = {
        let (mut before, mut after) = (selection_before.of(before), selection_after.of(after));
        ComparedTree::of(profiles, [&mut before, &mut after], &total, measure)
    };
    summary.samples = own.samples;
    summary.functions = own.functions.len();
    summary.changed = own.functions.iter().filter(|row| row.by_chance < SIGNIFICANT).count();

    let mut columns = Columns::default();
    let mut texts = Texts::default();
    functions(profiles, &own, &total.functions, &mut texts, &mut columns);
    nodes(&tree.nodes, &mut columns);
    columns.text("string.text", texts.iter());
    columns.finish(about(difference, &own))
}

fn about(difference: &Difference<'_>, comparison: &Comparison) -> Map<String, Value> {
    let recordings = difference.profiles.map(|profile| shown(&profile.about.recording));
    let kinds: Vec<&str> = FunctionKind::ALL.iter().map(|kind| kind.name()).collect();
    let ratio = match difference.measure {
        Measure::Share => None,
        Measure::Time(ratio) => Some(ratio),
    };
    let value = json!({
        "recordings": recordings,
        "samples": comparison.samples,
        "runs": difference.runs,
        "ratio": ratio,
        "significant": SIGNIFICANT,
        "kinds": kinds,
        "activities": Activities::compared(&difference.activities, comparison.samples),
    });
    match value {
        Value::Object(about) => about,
        _ => Map::new(),
    }
}

fn functions(
    profiles: [&Profile; 2],
    own: &Comparison,
    rows: &[ComparedFunction],
    texts: &mut Texts,
    columns: &mut Columns,
) {
    // As it is in the second recording, or in the first if it is not there.
    let found = |row: &ComparedFunction| {
        let ids = profiles.into_iter().zip(row.function).rev();
        ids.into_iter().find_map(|(profile, id)| Some((profile, profile.function(id?))))
    };
    let mut text = |of: fn(&Function) -> StringId, row| {
        let text = found(row).map(|(profile, function)| profile.text(of(function)));
        texts.number(&shown(text.unwrap_or_default()))
    };
    columns.u32("function.name", rows.iter().map(|row| text(|function| function.name, row)));
    columns.u32("function.file", rows.iter().map(|row| text(|function| function.file, row)));
    let line = |row| found(row).map_or(0, |(_, function)| function.line);
    columns.u32("function.line", rows.iter().map(line));
    let column = |row| found(row).map_or(0, |(_, function)| function.column);
    columns.u32("function.column", rows.iter().map(column));
    let kind = |row| {
        let (_, function) = found(row)?;
        let place = FunctionKind::ALL.iter().position(|&each| each == function.kind)?;
        u32::try_from(place).ok()
    };
    columns.u32("function.kind", rows.iter().map(|row| kind(row).unwrap_or_default()));
    let key = |row: &ComparedFunction| {
        let key = found(row).map(|(profile, function)| FunctionKey::of(profile, function).id());
        format!("{:016x}", key.unwrap_or_default())
    };
    let keys: Vec<String> = rows.iter().map(key).collect();
    columns.text("function.key", keys.iter().map(String::as_str));
    let is_in = |row: &ComparedFunction| {
        let [before, after] = row.function.map(|id| u32::from(id.is_some()));
        before | after << 1
    };
    columns.u32("function.in", rows.iter().map(is_in));
    pairs("function.own", rows.iter().map(|row| row.samples(Compared::Own)), columns);
    pairs("function.total", rows.iter().map(|row| row.samples(Compared::Total)), columns);
    // Functions that no sample ends in were not compared by that.
    let own_by_chance = |row: &ComparedFunction| {
        let ids = row.function.into_iter().enumerate();
        let place = ids.into_iter().find_map(|(side, id)| own.place_of(side, id?));
        place.and_then(|place| own.functions.get(place)).map_or(1.0, |row| row.by_chance)
    };
    columns.f64("function.own_by_chance", rows.iter().map(own_by_chance));
    columns.f64("function.total_by_chance", rows.iter().map(|row| row.by_chance));
}

fn nodes(nodes: &[ComparedNode], columns: &mut Columns) {
    let up = |(number, node): (u32, &ComparedNode)| {
        node.parent.map(|parent| number.saturating_sub(parent.0)).unwrap_or_default()
    };
    columns.u32("node.up", (0..).zip(nodes).map(up));
    let function = |node: &ComparedNode| u32::try_from(node.function).unwrap_or(u32::MAX);
    columns.u32("node.function", nodes.iter().map(function));
    pairs("node.own", nodes.iter().map(|node| node.own), columns);
    pairs("node.total", nodes.iter().map(|node| node.total), columns);
    columns.f64("node.by_chance", nodes.iter().map(|node| node.by_chance));
}

/// Numbers of samples, as two columns.
fn pairs(name: &str, rows: impl Iterator<Item = [u64; 2]> + Clone, columns: &mut Columns) {
    columns.u64(&format!("{name}_before"), rows.clone().map(|[before, _]| before));
    columns.u64(&format!("{name}_after"), rows.map(|[_, after]| after));
}
