//! Splits a context into the functions that it consists of.

use std::collections::BTreeMap;

use super::contexts::UnknownContext;
use super::cost::{Call, Cost, Jump};
use super::flow::{Edge, inclusive};
use super::moments::Moments;
use super::piece::{Entry, Piece};
use super::rows::Lines;
use super::shares::{Shares, split};
use crate::code_map::CodeMap;

/// Splits a context. The first piece is that of the context's own function.
pub(crate) fn pieces(
    context: &UnknownContext,
    lines: Lines<'_>,
    map: &mut impl CodeMap,
    events: usize,
    ir: usize,
    has_jumps: bool,
) -> Vec<Piece> {
    let shares = Shares::of(context, lines, map, ir, has_jumps);
    let mut pieces: Vec<Piece> = shares
        .labels
        .iter()
        .map(|label| Piece { owner: label.owner.clone(), ..Piece::default() })
        .collect();

    costs(lines, &shares, events, &mut pieces);
    for call in lines.calls {
        let of = shares.at(call.address);
        if let [only] = of {
            let costs = lines.values(call.values, events).to_vec();
            if let Some(piece) = pieces.get_mut(only.label) {
                piece.calls.push((call.clone(), costs));
            }
            continue;
        }
        let mut parts: BTreeMap<usize, (u64, Vec<u64>)> = BTreeMap::new();
        split(call.count, of, |label, count| {
            parts.insert(label, (count, vec![0; events]));
        });
        for (event, &value) in lines.values(call.values, events).iter().enumerate() {
            split(value, of, |label, part| {
                if let Some((_, costs)) = parts.get_mut(&label) {
                    add_at(costs, event, part);
                }
            });
        }
        for (label, (count, costs)) in parts {
            if let Some(piece) = pieces.get_mut(label).filter(|_| count > 0 || any(&costs)) {
                piece.calls.push((Call { count, ..call.clone() }, costs));
            }
        }
    }
    for jump in lines.jumps {
        let of = shares.at(jump.address);
        let enters = shares.entered_at(jump.target, map);
        if let ([only], None) = (of, enters) {
            pieces.get_mut(only.label).into_iter().for_each(|piece| piece.jumps.push(*jump));
            continue;
        }
        let mut executed = BTreeMap::new();
        split(jump.executed.unwrap_or(0), of, |label, part| _ = executed.insert(label, part));
        split(jump.taken, of, |label, taken| {
            let Some(piece) = pieces.get_mut(label).filter(|_| taken > 0) else { return };
            match enters {
                Some(to) => piece.entries.push(Entry {
                    address: jump.address,
                    line: jump.line,
                    to,
                    target: jump.target,
                    count: taken,
                    inclusive: Vec::new(),
                }),
                None => {
                    let executed = jump.executed.and_then(|_| executed.get(&label).copied());
                    piece.jumps.push(Jump { taken, executed, ..*jump });
                }
            }
        });
    }
    if !has_jumps {
        guess_entries(&shares, context, &mut pieces);
    }
    cost_entries(context, &shares, events, ir, &mut pieces);
    pieces
}

/// Assigns each piece its self costs.
fn costs(lines: Lines<'_>, shares: &Shares, events: usize, pieces: &mut [Piece]) {
    let mut sum = vec![0_u64; events];
    for at in lines.costs.chunk_by(|a, b| a.address == b.address) {
        let Some(&Cost { address, line, .. }) = at.first() else { continue };
        sum.fill(0);
        for cost in at {
            let values = lines.values(cost.values, events);
            sum.iter_mut().zip(values).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
        }
        let of = shares.at(address);
        for share in of {
            if let Some(piece) = pieces.get_mut(share.label) {
                let values = piece.values.len();
                piece.rows.push(Cost { address, line, values });
                match of {
                    [_] => piece.values.extend_from_slice(&sum),
                    _ => piece.values.resize(values.saturating_add(events), 0),
                }
            }
        }
        if let [_] = of {
            continue;
        }
        for (event, &value) in sum.iter().enumerate() {
            split(value, of, |label, part| {
                let Some(piece) = pieces.get_mut(label) else { return };
                let begin = piece.values.len().saturating_sub(events);
                add_at(piece.values.get_mut(begin..).unwrap_or_default(), event, part);
            });
        }
    }
}

/// Adds likely entries if the profile has no jumps. A function that was not called was jumped to. Where from is
/// unknown, except that it was within the context. The most likely place is the end of the context's own function.
fn guess_entries(shares: &Shares, context: &UnknownContext, pieces: &mut [Piece]) {
    for (to, count) in shares.entered_somehow() {
        let target = pieces.get(to).and_then(|piece| piece.owner.as_ref()).map(|owner| owner.start);
        let Some((own, target)) = pieces.first_mut().zip(target) else { continue };
        let last = own.rows.last().map(|row| (row.address, row.line));
        let (address, line) = last.unwrap_or((context.context.address, 0));
        own.entries.push(Entry { address, line, to, target, count, inclusive: Vec::new() });
    }
}

fn cost_entries(
    context: &UnknownContext,
    shares: &Shares,
    events: usize,
    ir: usize,
    pieces: &mut [Piece],
) {
    if pieces.iter().all(|piece| piece.entries.is_empty()) {
        return;
    }
    let own: Vec<Vec<u64>> = pieces
        .iter()
        .map(|piece| {
            let mut sum = vec![0_u64; events];
            let rows = piece.rows.iter().map(|row| piece.values(row, events));
            for costs in rows.chain(piece.calls.iter().map(|(_, costs)| costs.as_slice())) {
                sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
            }
            sum
        })
        .collect();
    let entries = |(from, piece): (usize, &Piece)| {
        let edges = piece.entries.iter().map(|entry| (from, entry.to, entry.count));
        edges.collect::<Vec<_>>()
    };
    let edges: Vec<Edge> = pieces
        .iter()
        .enumerate()
        .flat_map(entries)
        .map(|(from, to, count)| Edge { from, to, count })
        .collect();
    let mut moments = Moments::new(shares, pieces, context.context.address, events, ir);
    let costs = inclusive(&own, &edges, context.entries, |member| moments.of(member));
    let entries = pieces.iter_mut().flat_map(|piece| &mut piece.entries);
    entries.zip(costs).for_each(|(entry, costs)| entry.inclusive = costs);
}

fn add_at(costs: &mut [u64], event: usize, value: u64) {
    if let Some(sum) = costs.get_mut(event) {
        *sum = sum.saturating_add(value);
    }
}

fn any(costs: &[u64]) -> bool {
    costs.iter().any(|&cost| cost > 0)
}
