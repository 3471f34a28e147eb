//! Whose an instruction's executions are.
//!
//! A context of unknown code has in it whatever was come to by jumps. Had callgrind known the functions, a jump to
//! a function's first instruction would have been a call of it, and any other jump, and running on from one
//! function's end into the next one, would not. So an execution is of the function that was *entered last*: of the
//! context's own until a jump goes to some function's beginning. The jumps tell which instructions can be come to
//! from which beginning. Where that is but one, nothing is left to guess. Where it is several, the counts tell how
//! many executions are of which, as far as the ways that lead there are run through alike.

use std::collections::HashMap;

use super::collected::Collected;
use super::rows::Lines;
use crate::known::{CodeMap, Owner};

/// An instruction is of no more functions than this; of compiled code it is of one or two.
const MOST: usize = 4;
/// How long a machine instruction may be, at most.
const LONGEST: u64 = 15;
/// How often the counts are evened out.
const ROUNDS: usize = 40;

/// A function in a context.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    /// Who it is; the context's own may be nobody.
    pub owner: Option<Owner>,
}

/// Which part of an instruction's executions is of which function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// The label's number.
    pub label: usize,
    /// From 0 to 1; all of an instruction's make 1.
    pub part: f64,
}

/// The functions of a context, and what is whose.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The context's own comes first.
    pub labels: Vec<Label>,
    nodes: Vec<Node>,
    by_function: HashMap<u32, usize>,
}

#[derive(Debug)]
struct Node {
    address: u64,
    owner: Option<Owner>,
    executed: u64,
    /// How often it was come to by jumps.
    jumped_to: u64,
    shares: Vec<Share>,
}

const ALL: &[Share] = &[Share { label: 0, part: 1.0 }];

impl Shares {
    /// `ir` is the place of the instruction count among the costs; `jumps` says whether the profile has jumps at all.
    pub fn of(
        context: &Collected,
        lines: Lines<'_>,
        map: &mut impl CodeMap,
        ir: usize,
        jumps: bool,
    ) -> Self {
        let mut shares = Self {
            labels: vec![Label { owner: context.owner.clone() }],
            nodes: nodes(lines, map, ir),
            by_function: HashMap::new(),
        };
        let own = context.owner.as_ref().map(|owner| owner.function);
        if let Some(own) = own {
            shares.by_function.insert(own, 0);
        }
        if shares.nodes.iter().all(|node| node.owner.as_ref().map(|owner| owner.function) == own) {
            // Nobody else's: the usual case.
            shares.nodes.clear();
        } else if jumps {
            shares.follow(context, lines);
        } else {
            shares.by_owner();
        }
        shares
    }

    /// Whose the executions at `address` are.
    pub fn at(&self, address: u64) -> &[Share] {
        let found = self.nodes.binary_search_by_key(&address, |node| node.address);
        let node = found.ok().and_then(|index| self.nodes.get(index));
        node.map(|node| node.shares.as_slice()).filter(|shares| !shares.is_empty()).unwrap_or(ALL)
    }

    /// The function that is entered by a jump to `address`, if that is where it begins.
    pub fn entered_at(&self, address: u64, map: &mut impl CodeMap) -> Option<usize> {
        let owner = map.at(address).filter(|owner| owner.start == address)?;
        self.by_function.get(&owner.function).copied()
    }

    /// Without jumps: every instruction is its owner's, if that was entered at all.
    ///
    /// Gives the functions that were entered, with how often, in the order of their addresses.
    pub fn entered_somehow(&self) -> Vec<(usize, u64)> {
        let starts = self.nodes.iter().filter_map(|node| {
            let owner = node.owner.as_ref().filter(|owner| owner.start == node.address)?;
            let label = *self.by_function.get(&owner.function)?;
            (label != 0).then_some((label, node.executed))
        });
        starts.collect()
    }

    fn label(&mut self, owner: &Owner) -> usize {
        let next = self.labels.len();
        let label = *self.by_function.entry(owner.function).or_insert(next);
        if label == next {
            self.labels.push(Label { owner: Some(owner.clone()) });
        }
        label
    }

    fn by_owner(&mut self) {
        let starts: Vec<Owner> = self
            .nodes
            .iter()
            .filter(|node| node.executed > 0)
            .filter_map(|node| node.owner.clone().filter(|owner| owner.start == node.address))
            .collect();
        for owner in &starts {
            self.label(owner);
        }
        for node in &mut self.nodes {
            let owner = node.owner.as_ref().map(|owner| owner.function);
            let label = owner.and_then(|function| self.by_function.get(&function));
            node.shares = vec![Share { label: label.copied().unwrap_or(0), part: 1.0 }];
        }
    }

    fn follow(&mut self, context: &Collected, lines: Lines<'_>) {
        let place = |nodes: &[Node], address: u64| {
            nodes.binary_search_by_key(&address, |node| node.address).ok()
        };
        // By source: where a jump leads that is no entry.
        let mut out: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.nodes.len()];
        // By target: where from.
        let mut into: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.nodes.len()];
        let mut entered: Vec<(usize, usize, u64)> = Vec::new();
        for jump in lines.jumps {
            let (Some(from), Some(to)) =
                (place(&self.nodes, jump.address), place(&self.nodes, jump.target))
            else {
                continue;
            };
            let Some(target) = self.nodes.get_mut(to) else { continue };
            target.jumped_to = target.jumped_to.saturating_add(jump.taken);
            match target.owner.clone().filter(|owner| owner.start == jump.target) {
                Some(owner) => {
                    let label = self.label(&owner);
                    entered.push((to, label, jump.taken));
                }
                None => {
                    push_at(&mut out, from, (to, jump.taken));
                    push_at(&mut into, to, (from, jump.taken));
                }
            }
        }
        if let Some(entry) = place(&self.nodes, context.context.address)
            && let Some(node) = self.nodes.get_mut(entry)
        {
            // How often it was called is not known where collecting began later.
            let rest = node.executed.saturating_sub(node.jumped_to);
            let count = if context.entries > 0 { context.entries } else { rest.max(1) };
            node.jumped_to = node.jumped_to.saturating_add(count);
            entered.push((entry, 0, count));
        }
        // What was executed more often than jumped to was run on into.
        let pairs = self.nodes.iter().zip(self.nodes.iter().skip(1));
        let falls: Vec<(usize, u64)> = (1_usize..)
            .zip(pairs)
            .filter(|(_, (before, node))| node.address.saturating_sub(before.address) <= LONGEST)
            .map(|(index, (_, node))| (index, node.executed.saturating_sub(node.jumped_to)))
            .filter(|&(_, count)| count > 0)
            .collect();
        for (to, count) in falls {
            let from = to.saturating_sub(1);
            push_at(&mut out, from, (to, count));
            push_at(&mut into, to, (from, count));
        }

        let mut waiting: Vec<(usize, usize)> =
            entered.iter().map(|&(node, label, _)| (node, label)).collect();
        self.spread(&mut waiting, &out);
        // What cannot be come to (an exception was caught there, collecting began there) is its owner's, if that was
        // entered.
        for index in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(index).filter(|node| node.shares.is_empty()) else {
                continue;
            };
            let function = node.owner.as_ref().map(|owner| owner.function);
            let label = function.and_then(|function| self.by_function.get(&function).copied());
            waiting.push((index, label.unwrap_or(0)));
            self.spread(&mut waiting, &out);
        }
        self.even_out(&into, &entered);
    }

    fn spread(&mut self, waiting: &mut Vec<(usize, usize)>, out: &[Vec<(usize, u64)>]) {
        while let Some((index, label)) = waiting.pop() {
            let Some(node) = self.nodes.get_mut(index) else { continue };
            if node.shares.len() >= MOST || node.shares.iter().any(|share| share.label == label) {
                continue;
            }
            node.shares.push(Share { label, part: 1.0 });
            let next = out.get(index).map(Vec::as_slice).unwrap_or_default();
            waiting.extend(next.iter().map(|&(to, _)| (to, label)));
        }
    }

    /// How much of what several functions come to is of which.
    fn even_out(&mut self, into: &[Vec<(usize, u64)>], entered: &[(usize, usize, u64)]) {
        let several: Vec<usize> = (0..self.nodes.len())
            .filter(|&index| self.nodes.get(index).is_some_and(|node| node.shares.len() > 1))
            .collect();
        for &index in &several {
            let Some(node) = self.nodes.get_mut(index) else { continue };
            let equal = 1.0 / node.shares.len() as f64;
            node.shares.iter_mut().for_each(|share| share.part = equal);
        }
        let mut entries: HashMap<usize, Vec<(usize, u64)>> = HashMap::new();
        for &(node, label, count) in entered {
            entries.entry(node).or_default().push((label, count));
        }
        for _ in 0..ROUNDS {
            let mut change = 0.0_f64;
            for &index in &several {
                let Some(node) = self.nodes.get(index) else { continue };
                let mut new = node.shares.clone();
                new.iter_mut().for_each(|share| share.part = 0.0);
                let mut add = |label: usize, weight: f64| {
                    if let Some(share) = new.iter_mut().find(|share| share.label == label) {
                        share.part += weight;
                    }
                };
                for &(label, count) in entries.get(&index).map(Vec::as_slice).unwrap_or_default() {
                    add(label, count as f64);
                }
                for &(from, count) in into.get(index).map(Vec::as_slice).unwrap_or_default() {
                    let before = self.nodes.get(from).map(|node| node.shares.as_slice());
                    for share in before.unwrap_or_default() {
                        add(share.label, count as f64 * share.part);
                    }
                }
                let sum: f64 = new.iter().map(|share| share.part).sum();
                if sum <= 0.0 {
                    continue;
                }
                for (share, old) in new.iter_mut().zip(&node.shares) {
                    share.part /= sum;
                    change = change.max((share.part - old.part).abs());
                }
                if let Some(node) = self.nodes.get_mut(index) {
                    node.shares = new;
                }
            }
            if change < 1e-9 {
                break;
            }
        }
    }
}

fn push_at<T>(lists: &mut [Vec<T>], index: usize, item: T) {
    if let Some(list) = lists.get_mut(index) {
        list.push(item);
    }
}

/// The instructions of a context, by address.
fn nodes(lines: Lines<'_>, map: &mut impl CodeMap, ir: usize) -> Vec<Node> {
    let mut executed: Vec<(u64, u64)> = lines
        .costs
        .iter()
        .map(|cost| {
            let count = lines.values(cost.values.saturating_add(ir), 1).first().copied();
            (cost.address, count.unwrap_or(0))
        })
        .collect();
    executed.extend(lines.calls.iter().map(|call| (call.address, 0)));
    executed.extend(lines.jumps.iter().map(|jump| (jump.address, 0)));
    executed.sort_unstable_by_key(|&(address, _)| address);
    let mut nodes: Vec<Node> = Vec::new();
    let mut owner: Option<Owner> = None;
    for (address, count) in executed {
        if let Some(node) = nodes.last_mut().filter(|node| node.address == address) {
            node.executed = node.executed.saturating_add(count);
            continue;
        }
        if !owner.as_ref().is_some_and(|owner| owner.visible.contains(&address)) {
            owner = map.at(address);
        }
        let owner = owner.clone();
        nodes.push(Node { address, owner, executed: count, jumped_to: 0, shares: Vec::new() });
    }
    nodes
}

/// A number in parts that make the whole.
pub(crate) fn split(value: u64, shares: &[Share], mut give: impl FnMut(usize, u64)) {
    let Some((last, others)) = shares.split_last() else { return };
    let mut rest = value;
    for share in others {
        let part = ((value as f64 * share.part).round() as u64).min(rest);
        give(share.label, part);
        rest = rest.saturating_sub(part);
    }
    give(last.label, rest);
}
