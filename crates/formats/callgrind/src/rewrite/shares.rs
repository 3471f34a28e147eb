//! Determines which functions the executions of an instruction belong to.
//!
//! A context of unknown code contains everything that was reached by jumps. If callgrind had known the functions, it
//! would have treated a jump to the first instruction of a function as a call, but not any other jump, nor running
//! past the end of one function into the next. So an execution belongs to the function that was *entered last*: to
//! the context's own until a jump goes to the beginning of some function. The jumps show from which beginnings an
//! instruction can be reached. If there is only one, the answer is certain. If there are several, the execution
//! counts show how many executions belong to each, assuming that all paths to the instruction are executed alike.

use std::collections::HashMap;

use super::contexts::UnknownContext;
use super::rows::Lines;
use crate::code_map::{CodeMap, Owner};

/// Maximum number of functions that an instruction belongs to. In compiled code it is one or two.
const MOST: usize = 4;
/// Maximum length of a machine instruction.
const LONGEST: u64 = 15;
/// Maximum number of iterations that balance the counts.
const ROUNDS: usize = 40;

/// A function in a context.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    /// The function; the context's own may be unknown.
    pub owner: Option<Owner>,
}

/// The share of an instruction's executions that belongs to one function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// The index of the label.
    pub label: usize,
    /// From 0 to 1; the shares of an instruction add up to 1.
    pub part: f64,
}

/// The functions of a context, and what belongs to each.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The context's own function comes first.
    pub labels: Vec<Label>,
    nodes: Vec<Node>,
    by_function: HashMap<u32, usize>,
    /// By instruction: those that follow it in the same function, and how often.
    out: Vec<Vec<(usize, u64)>>,
    /// By instruction: those that it follows, and how often.
    into: Vec<Vec<(usize, u64)>>,
}

#[derive(Debug)]
struct Node {
    address: u64,
    owner: Option<Owner>,
    executed: u64,
    /// How often it was reached by jumps.
    jumped_to: u64,
    /// How often it jumped to the beginning of a function.
    entering: u64,
    shares: Vec<Share>,
}

const ALL: &[Share] = &[Share { label: 0, part: 1.0 }];

impl Shares {
    /// `ir` is the index of the instruction count among the costs; `jumps` is whether the profile has jumps at all.
    pub fn of(
        context: &UnknownContext,
        lines: Lines<'_>,
        map: &mut impl CodeMap,
        ir: usize,
        jumps: bool,
    ) -> Self {
        let mut shares = Self {
            labels: vec![Label { owner: context.owner.clone() }],
            nodes: nodes(lines, map, ir),
            by_function: HashMap::new(),
            out: Vec::new(),
            into: Vec::new(),
        };
        if let Some(own) = &context.owner {
            shares.by_function.insert(own.function, 0);
        }
        if jumps {
            shares.follow(context, lines);
        } else {
            shares.by_owner();
        }
        shares
    }

    /// The functions that the executions at `address` belong to.
    pub fn at(&self, address: u64) -> &[Share] {
        let node = self.index(address).and_then(|index| self.nodes.get(index));
        node.map(|node| node.shares.as_slice()).filter(|shares| !shares.is_empty()).unwrap_or(ALL)
    }

    /// The number of instructions.
    pub fn instructions(&self) -> usize {
        self.nodes.len()
    }

    /// The index of the instruction at `address`.
    pub fn index(&self, address: u64) -> Option<usize> {
        self.nodes.binary_search_by_key(&address, |node| node.address).ok()
    }

    /// Whether an instruction belongs to a function, possibly to others as well.
    pub fn is_of(&self, index: usize, label: usize) -> bool {
        let node = self.nodes.get(index);
        node.is_some_and(|node| node.shares.iter().any(|share| share.label == label))
    }

    /// The instructions that follow the one with this index in the same function, and how often.
    pub fn after(&self, index: usize) -> &[(usize, u64)] {
        self.out.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    /// The instructions that the one with this index follows, and how often.
    pub fn before(&self, index: usize) -> &[(usize, u64)] {
        self.into.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the context was left at an instruction, such as a return.
    pub fn is_end(&self, index: usize) -> bool {
        let Some(node) = self.nodes.get(index) else { return false };
        let counts = self.after(index).iter().map(|&(_, count)| count);
        node.executed > counts.fold(node.entering, u64::saturating_add)
    }

    /// The function that a jump to `address` enters, if it begins there.
    pub fn entered_at(&self, address: u64, map: &mut impl CodeMap) -> Option<usize> {
        let owner = map.at(address).filter(|owner| owner.start == address)?;
        self.by_function.get(&owner.function).copied()
    }

    /// For profiles without jumps: every instruction belongs to its owner, if that was entered at all.
    ///
    /// Returns the functions that were entered, and how often, in the order of their addresses.
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

    fn follow(&mut self, context: &UnknownContext, lines: Lines<'_>) {
        let mut out: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.nodes.len()];
        let mut into: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.nodes.len()];
        let mut entered: Vec<(usize, usize, u64)> = Vec::new();
        for jump in lines.jumps {
            let (Some(from), Some(to)) = (self.index(jump.address), self.index(jump.target)) else {
                continue;
            };
            let Some(target) = self.nodes.get_mut(to) else { continue };
            target.jumped_to = target.jumped_to.saturating_add(jump.taken);
            match target.owner.clone().filter(|owner| owner.start == jump.target) {
                Some(owner) => {
                    let label = self.label(&owner);
                    entered.push((to, label, jump.taken));
                    if let Some(node) = self.nodes.get_mut(from) {
                        node.entering = node.entering.saturating_add(jump.taken);
                    }
                }
                None => {
                    push_at(&mut out, from, (to, jump.taken));
                    push_at(&mut into, to, (from, jump.taken));
                }
            }
        }
        if let Some(entry) = self.index(context.context.address)
            && let Some(node) = self.nodes.get_mut(entry)
        {
            // The number of calls is unknown if collection started later.
            let rest = node.executed.saturating_sub(node.jumped_to);
            let count = if context.entries > 0 { context.entries } else { rest.max(1) };
            node.jumped_to = node.jumped_to.saturating_add(count);
            entered.push((entry, 0, count));
        }
        // An instruction that was executed more often than jumped to was also reached from the instruction before it,
        // unless that one always jumped. (The call that reached it may be counted in the part before.)
        let pairs = self.nodes.iter().zip(&out).zip(self.nodes.iter().skip(1));
        let falls: Vec<(usize, u64)> = (1_usize..)
            .zip(pairs)
            .filter(|(_, ((before, _), node))| {
                node.address.saturating_sub(before.address) <= LONGEST
            })
            .map(|(index, ((before, jumps), node))| {
                let jumps = jumps.iter().map(|&(_, count)| count);
                let jumped = jumps.fold(before.entering, u64::saturating_add);
                let passed = before.executed.saturating_sub(jumped);
                (index, node.executed.saturating_sub(node.jumped_to).min(passed))
            })
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
        // An instruction that is not reachable (an exception was caught there, or collection began there) belongs to
        // its owner, if that was entered.
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
        (self.out, self.into) = (out, into);
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

    /// Computes the shares of instructions that several functions reach.
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

/// The instructions of a context, sorted by address.
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
        nodes.push(Node {
            address,
            owner,
            executed: count,
            jumped_to: 0,
            entering: 0,
            shares: Vec::new(),
        });
    }
    nodes
}

/// Splits a number into parts that add up to it.
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
