//! Finds a function by what a user types.

use std::collections::BTreeSet;

use profile::{Count, FunctionId, FunctionKind, Profile, Totals};

use crate::function_info::FunctionInfo;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// One function, or the one with the most samples of several that have exactly this name: the others.
    Function(FunctionId, Vec<FunctionId>),
    /// Functions with names that contain what was typed, those with the most samples first.
    Several(Vec<(FunctionId, Count)>),
    /// None.
    Nothing,
}

/// Finds a function: by its name, its name and place (`run src/a.js:12`, `run src/a.js:12:5`), or the symbol of one of its codes; otherwise by a part of these, in
/// which small and capital letters are the same.
///
/// Functions without samples are found as well, if they have exactly this name.
#[must_use]
pub fn find(profile: &Profile, totals: &Totals, typed: &str) -> Found {
    let ids = || profile.function_ids();
    let is_function = |id: &FunctionId| profile.function(*id).kind != FunctionKind::End;
    let mut symbols: BTreeSet<(FunctionId, &[u8])> = BTreeSet::new();
    for code in profile.codes() {
        symbols.insert((code.function, profile.text(code.symbol)));
    }
    let symbols_of = |id: FunctionId| {
        let next = FunctionId(id.0.saturating_add(1));
        symbols.range((id, &[][..])..(next, &[][..])).map(|(_, symbol)| *symbol)
    };
    let count = |id: FunctionId| totals.of_function(id);
    let order = |functions: &mut Vec<FunctionId>| {
        functions.sort_by_key(|id| std::cmp::Reverse((count(*id).own, count(*id).total)));
    };
    let is_exact = |id: &FunctionId| {
        profile.function_name(*id) == typed.as_bytes()
            || symbols_of(*id).any(|symbol| symbol == typed.as_bytes())
            || FunctionInfo::of(profile, *id).is_called(typed)
    };
    let mut exact: Vec<FunctionId> = ids().filter(is_function).filter(is_exact).collect();
    order(&mut exact);
    if let Some((first, others)) = exact.split_first() {
        return Found::Function(*first, others.to_vec());
    }
    let wanted = typed.to_lowercase();
    let contains = |id: &FunctionId| {
        FunctionInfo::of(profile, *id).exact().to_lowercase().contains(&wanted)
            || symbols_of(*id)
                .any(|symbol| String::from_utf8_lossy(symbol).to_lowercase().contains(&wanted))
    };
    let sampled = |id: &FunctionId| count(*id).total > 0;
    let mut parts: Vec<FunctionId> =
        ids().filter(is_function).filter(sampled).filter(contains).collect();
    order(&mut parts);
    match parts.as_slice() {
        [] => Found::Nothing,
        [only] => Found::Function(*only, Vec::new()),
        _ => Found::Several(parts.into_iter().map(|id| (id, count(id))).collect()),
    }
}

/// The function with the most samples that has code to show: of its own, or of functions that it is inlined into.
#[must_use]
pub fn hottest(profile: &Profile, totals: &Totals) -> Option<FunctionId> {
    let with_code = profile.frames().iter().filter(|frame| frame.code.is_some());
    let has_code: BTreeSet<FunctionId> = with_code.map(|frame| frame.function).collect();
    let functions = totals.functions(profile);
    let mut sampled = functions.iter().filter(|(_, count)| count.own > 0).map(|(id, _)| *id);
    let first = sampled.clone().find(|id| has_code.contains(id));
    first.or_else(|| sampled.next())
}
