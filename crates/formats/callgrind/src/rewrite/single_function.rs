//! Contexts that belong to one function only, as nearly all do, and need not be split.

use super::contexts::UnknownContext;
use super::cost::{Call, Cost, Jump};
use super::rows::Lines;
use crate::code_map::{CodeMap, Owner};

/// Whether everything in a context belongs to its own function, and no jump in it goes to the beginning of that
/// function.
pub(super) fn is_single_function(
    context: &UnknownContext,
    lines: Lines<'_>,
    map: &mut impl CodeMap,
) -> bool {
    let own = context.owner.as_ref().map(|owner| owner.function);
    let mut at: Option<Owner> = None;
    let mut is_own = |map: &mut _, address: u64| {
        if !at.as_ref().is_some_and(|owner| owner.visible.contains(&address)) {
            at = CodeMap::at(map, address);
        }
        at.as_ref().map(|owner| owner.function) == own
    };
    let enters = |map: &mut _, target: u64| {
        own.is_some()
            && CodeMap::at(map, target)
                .is_some_and(|owner| owner.start == target && Some(owner.function) == own)
    };
    lines.costs.iter().all(|cost| is_own(map, cost.address))
        && lines.calls.iter().all(|call| is_own(map, call.address))
        && lines.jumps.iter().all(|jump| is_own(map, jump.address))
        && !lines.jumps.iter().any(|jump| enters(map, jump.target))
}

/// The next lines in the order of addresses.
pub(super) enum Next<'a> {
    /// Self costs at one address.
    Costs(&'a [Cost]),
    Call(&'a Call),
    Jump(&'a Jump),
}

/// Merges lines by address. The lines of each kind must be sorted by address. At the same address costs come first,
/// then calls.
pub(super) fn merge_by_address(lines: Lines<'_>) -> impl Iterator<Item = Next<'_>> {
    let Lines { mut costs, mut calls, mut jumps, .. } = lines;
    std::iter::from_fn(move || {
        let cost = costs.first().map(|cost| cost.address);
        let call = calls.first().map(|call| call.address);
        let jump = jumps.first().map(|jump| jump.address);
        // A missing line comes after all others.
        let is_before = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => a <= b,
            (a, _) => a.is_some(),
        };
        if is_before(cost, call) && is_before(cost, jump) {
            let more = costs.iter().take_while(|more| Some(more.address) == cost).count();
            let (at, behind) = costs.split_at_checked(more)?;
            costs = behind;
            Some(Next::Costs(at))
        } else if is_before(call, jump) {
            let (call, behind) = calls.split_first()?;
            calls = behind;
            Some(Next::Call(call))
        } else {
            let (jump, behind) = jumps.split_first()?;
            jumps = behind;
            Some(Next::Jump(jump))
        }
    })
}
