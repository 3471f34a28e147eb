//! The inclusive costs of jumps that are calls.
//!
//! The total cost of a function that was jumped to is known: its own cost, and the cost of what it called. Each
//! function that jumped to it gets a share in proportion to its number of jumps. This is exact if only one function
//! jumps, or if the cost is the same each time.
//!
//! callgrind ends all calls that are jumps at the return from the last function. In a ring, a jump therefore includes
//! the cost of all following visits, and the inclusive cost of an edge is the sum over its jumps. If the ring is a
//! simple cycle that was entered once, this is computed from the order of visits ([`mod@walk`]) and the moments of the
//! costs. In other rings, the number of iterations is unknown. There, a jump gets the cost of its target without the
//! ring. A jump to a function's own beginning gets nothing, because its cost is already the function's own.

use super::walk::{Member, walk};

/// A jump from one function of a context to the beginning of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    pub count: u64,
}

/// The inclusive cost of each edge. `own` has the cost of each function without the edges, one number per event.
/// `entries` is the number of calls of the first function. `moments` returns twice the sum of a function's own costs, of
/// each visit, multiplied by the number of the visit from 0, or `None` for events of which this is unknown.
pub(crate) fn inclusive(
    own: &[Vec<u64>],
    edges: &[Edge],
    entries: u64,
    mut moments: impl FnMut(&Member) -> Vec<Option<u128>>,
) -> Vec<Vec<u64>> {
    let events = own.first().map_or(0, Vec::len);
    let mut costs = vec![vec![0_u64; events]; edges.len()];
    let (ring_of, rings) = rings(own.len(), edges);
    // The cost of each function, plus that of the jumps that leave its cycle.
    let mut with_exits: Vec<Vec<u64>> = own.to_vec();
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); rings.len()];
    let mut entering: Vec<Vec<usize>> = vec![Vec::new(); own.len()];
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); own.len()];
    let mut to_itself: Vec<Vec<usize>> = vec![Vec::new(); own.len()];
    // How often a function is entered, except from the other functions of its cycle.
    let mut entered = vec![0_u64; own.len()];
    if let Some(first) = entered.first_mut() {
        *first = entries;
    }
    let ring = |node: usize| ring_of.get(node).copied().unwrap_or(0);
    for (index, edge) in edges.iter().enumerate() {
        let is_within = ring(edge.from) == ring(edge.to);
        if (!is_within || edge.from == edge.to)
            && let Some(entered) = entered.get_mut(edge.to)
        {
            *entered = entered.saturating_add(edge.count);
        }
        let lists = match is_within {
            true if edge.from == edge.to => [to_itself.get_mut(edge.to), None],
            true => [within.get_mut(edge.to), None],
            false => [leaving.get_mut(ring(edge.from)), entering.get_mut(edge.to)],
        };
        lists.into_iter().flatten().for_each(|list| list.push(index));
    }
    let list = |lists: &[Vec<usize>], index: usize| lists.get(index).cloned().unwrap_or_default();
    // A cycle comes after those that it leads to.
    for (number, members) in rings.iter().enumerate() {
        for index in list(&leaving, number) {
            if let (Some(edge), Some(cost)) = (edges.get(index), costs.get(index))
                && let Some(sum) = with_exits.get_mut(edge.from)
            {
                add(sum, cost);
            }
        }
        let mut total = vec![0; events];
        for &member in members {
            with_exits.get(member).into_iter().for_each(|cost| add(&mut total, cost));
        }
        let called = if members.contains(&0) { entries } else { 0 };
        let ways_in: Vec<usize> = members.iter().flat_map(|&to| list(&entering, to)).collect();
        share(&total, edges, &ways_in, called, &mut costs);
        for &member in members {
            let otherwise = entered.get(member).copied().unwrap_or(0);
            if let Some(cost) = with_exits.get(member) {
                share(cost, edges, &list(&within, member), otherwise, &mut costs);
            }
        }

        let jumps_to = if members.len() > 1 { &within } else { &to_itself };
        let mixed = members.len() > 1 && members.iter().any(|&at| !list(&to_itself, at).is_empty());
        let left = only(edges, &list(&leaving, number));
        let (Some(first), Ok(left), false) = (entrance(edges, &ways_in, called), left, mixed)
        else {
            continue;
        };
        let before = |to: usize| one_source(edges, jumps_to.get(to)?);
        let Some(walk) = walk(first, members.len(), left.map(|edge| edge.from), before) else {
            continue;
        };
        for (member, totals) in walk.iter().zip(in_walk(&walk, own, &with_exits, &mut moments)) {
            let list = list(jumps_to, member.function);
            for (event, total) in totals.into_iter().enumerate() {
                if let Some(total) = total {
                    share_event(event, total, edges, &list, 0, &mut costs);
                }
            }
        }
    }
    costs
}

/// The function at which a ring was entered, if it was entered once.
fn entrance(edges: &[Edge], ways_in: &[usize], called: u64) -> Option<usize> {
    match (only(edges, ways_in), called) {
        (Ok(Some(edge)), 0) => Some(edge.to),
        (Ok(None), 1) => Some(0),
        _ => None,
    }
}

/// The jump of `list` if it is only one, which happened once, and an error if there are more.
fn only<'a>(edges: &'a [Edge], list: &[usize]) -> Result<Option<&'a Edge>, ()> {
    match list {
        [] => Ok(None),
        [index] => edges.get(*index).filter(|edge| edge.count == 1).map(Some).ok_or(()),
        _ => Err(()),
    }
}

/// The function that the edges of `list` come from, if it is only one, and the sum of their counts.
fn one_source(edges: &[Edge], list: &[usize]) -> Option<(usize, u64)> {
    let mut of = list.iter().filter_map(|&index| edges.get(index));
    let first = of.next()?;
    of.try_fold((first.from, first.count), |(from, count), edge| {
        Some((from, count.checked_add(edge.count)?)).filter(|_| edge.from == from)
    })
}

/// The inclusive costs of all jumps to each function of a walk, by event. A visit is included once by each earlier jump,
/// which are as many as the visit's number, and one more for functions at or behind the jump's target in the ring.
fn in_walk(
    walk: &[Member],
    own: &[Vec<u64>],
    with_exits: &[Vec<u64>],
    moments: &mut impl FnMut(&Member) -> Vec<Option<u128>>,
) -> Vec<Vec<Option<u64>>> {
    let events = own.first().map_or(0, Vec::len);
    let at = |costs: &[Vec<u64>], member: &Member, event: usize| {
        let cost = costs.get(member.function).and_then(|costs| costs.get(event));
        u128::from(cost.copied().unwrap_or(0))
    };
    let mut twice = vec![Some(0_u128); events];
    for member in walk {
        let of = moments(member);
        for (event, sum) in twice.iter_mut().enumerate() {
            // What comes after the ring follows its last visit.
            let exits = at(with_exits, member, event).saturating_sub(at(own, member, event));
            let last = u128::from(member.visits.saturating_sub(1)).saturating_mul(2);
            let own = of.get(event).copied().flatten();
            *sum = sum.zip(own).map(|(sum, own)| {
                sum.saturating_add(own).saturating_add(exits.saturating_mul(last))
            });
        }
    }
    let mut behind = vec![0_u128; events];
    let mut totals: Vec<Vec<Option<u64>>> = Vec::with_capacity(walk.len());
    for member in walk.iter().rev() {
        let mut of = Vec::with_capacity(events);
        for (event, (behind, twice)) in behind.iter_mut().zip(&twice).enumerate() {
            *behind = behind.saturating_add(at(with_exits, member, event));
            let once_more = if member.is_first { 0 } else { *behind };
            let total = twice.map(|twice| (twice / 2).saturating_add(once_more));
            of.push(total.map(|total| u64::try_from(total).unwrap_or(u64::MAX)));
        }
        totals.push(of);
    }
    totals.reverse();
    totals
}

/// Distributes `total` over the edges of `list`. Calls that were counted elsewhere have `others` shares.
fn share(total: &[u64], edges: &[Edge], list: &[usize], others: u64, costs: &mut [Vec<u64>]) {
    for (event, &total) in total.iter().enumerate() {
        share_event(event, total, edges, list, others, costs);
    }
}

fn share_event(
    event: usize,
    total: u64,
    edges: &[Edge],
    list: &[usize],
    others: u64,
    costs: &mut [Vec<u64>],
) {
    let counts = list.iter().filter_map(|&index| edges.get(index)).map(|edge| edge.count);
    let sum = counts.fold(u128::from(others), |sum, count| sum.saturating_add(u128::from(count)));
    let mut rest = total;
    for (place, &index) in (1..).zip(list) {
        let cost = costs.get_mut(index).and_then(|costs| costs.get_mut(event));
        let (Some(edge), Some(cost)) = (edges.get(index), cost) else { continue };
        let part = u128::from(total).saturating_mul(u128::from(edge.count)).checked_div(sum);
        let part = part.and_then(|part| u64::try_from(part).ok()).unwrap_or(0);
        let is_last = place == list.len() && others == 0;
        *cost = if is_last { rest } else { part.min(rest) };
        rest = rest.saturating_sub(*cost);
    }
}

fn add(sum: &mut [u64], cost: &[u64]) {
    sum.iter_mut().zip(cost).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
}

/// The strongly connected components (Tarjan's algorithm, without recursion): the component of each node, and the
/// members of each component. A component comes after those that it leads to.
fn rings(nodes: usize, edges: &[Edge]) -> (Vec<usize>, Vec<Vec<usize>>) {
    const NEW: usize = usize::MAX;
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for edge in edges {
        if let Some(list) = next.get_mut(edge.from) {
            list.push(edge.to);
        }
    }
    let mut order = vec![NEW; nodes];
    let mut lowest = vec![NEW; nodes];
    let mut ring_of = vec![NEW; nodes];
    let mut rings: Vec<Vec<usize>> = Vec::new();
    let (mut count, mut open, mut path) = (0_usize, Vec::new(), Vec::new());
    let get = |list: &[usize], index: usize| list.get(index).copied().unwrap_or(NEW);
    let set = |list: &mut [usize], index: usize, value: usize| {
        if let Some(place) = list.get_mut(index) {
            *place = value;
        }
    };
    for root in 0..nodes {
        if get(&order, root) != NEW {
            continue;
        }
        path.push((root, 0_usize));
        while let Some((node, done)) = path.pop() {
            if done == 0 {
                set(&mut order, node, count);
                set(&mut lowest, node, count);
                count = count.saturating_add(1);
                open.push(node);
            }
            let target = next.get(node).and_then(|list| list.get(done)).copied();
            if let Some(target) = target {
                path.push((node, done.saturating_add(1)));
                if get(&order, target) == NEW {
                    path.push((target, 0));
                } else if get(&ring_of, target) == NEW {
                    let low = get(&lowest, node).min(get(&order, target));
                    set(&mut lowest, node, low);
                }
                continue;
            }
            if get(&lowest, node) == get(&order, node) {
                let mut ring = Vec::new();
                while let Some(member) = open.pop() {
                    set(&mut ring_of, member, rings.len());
                    ring.push(member);
                    if member == node {
                        break;
                    }
                }
                rings.push(ring);
            }
            if let Some(&(parent, _)) = path.last() {
                let low = get(&lowest, parent).min(get(&lowest, node));
                set(&mut lowest, parent, low);
            }
        }
    }
    (ring_of, rings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All visits of a function cost the same.
    fn of(own: &[u64], edges: &[(usize, usize, u64)], entries: u64) -> Vec<u64> {
        let evenly = |member: &Member| {
            vec![Some(u128::from(own[member.function]) * u128::from(member.visits - 1))]
        };
        with_moments(own, edges, entries, evenly)
    }

    fn with_moments(
        own: &[u64],
        edges: &[(usize, usize, u64)],
        entries: u64,
        moments: impl FnMut(&Member) -> Vec<Option<u128>>,
    ) -> Vec<u64> {
        let own: Vec<Vec<u64>> = own.iter().map(|&cost| vec![cost]).collect();
        let edges: Vec<Edge> =
            edges.iter().map(|&(from, to, count)| Edge { from, to, count }).collect();
        inclusive(&own, &edges, entries, moments).iter().map(|cost| cost[0]).collect()
    }

    #[test]
    fn a_chain_costs_what_is_behind() {
        assert_eq!(of(&[1, 10, 100], &[(0, 1, 5), (1, 2, 5)], 5), [110, 100]);
    }

    #[test]
    fn who_jumps_more_often_gets_more() {
        // A diamond: both sides jump to the lower corner.
        let edges = [(0, 1, 1), (0, 2, 3), (1, 3, 1), (2, 3, 3)];
        assert_eq!(of(&[0, 10, 20, 41], &edges, 4), [10 + 10, 20 + 31, 10, 31]);
    }

    #[test]
    fn a_ring_that_is_entered_often_is_not_counted_twice() {
        assert_eq!(of(&[30], &[(0, 0, 9)], 2), [0]);
        // Enters by the first function, cycles, and leaves to the last.
        let edges = [(0, 1, 2), (1, 2, 6), (2, 1, 4), (2, 3, 2)];
        assert_eq!(of(&[5, 60, 30, 7], &edges, 2), [97, 37, 40, 7]);
    }

    /// The program that jumps of a ring are the calls of: the inclusive cost of each is what is behind it.
    fn followed(path: &[usize], cost: impl Fn(usize, usize) -> u64) -> Expected {
        let functions = path.iter().max().expect("one") + 1;
        let mut expected =
            Expected { own: vec![0; functions], twice: vec![0; functions], edges: Vec::new() };
        let mut visits = vec![0_usize; functions];
        let costs: Vec<u64> = path
            .iter()
            .map(|&function| {
                let cost = cost(function, visits[function]);
                expected.own[function] += cost;
                expected.twice[function] += u128::from(cost) * 2 * visits[function] as u128;
                visits[function] += 1;
                cost
            })
            .collect();
        for (index, jump) in path.windows(2).enumerate() {
            let inclusive: u64 = costs[index + 1..].iter().sum();
            let edge = expected.edges.iter_mut().find(|(edge, _)| edge[..] == *jump);
            match edge {
                Some((_, sums)) => *sums = [sums[0] + 1, sums[1] + inclusive],
                None => expected.edges.push(([jump[0], jump[1]], [1, inclusive])),
            }
        }
        expected
    }

    struct Expected {
        own: Vec<u64>,
        twice: Vec<u128>,
        /// From and to; the number of jumps and the inclusive cost.
        edges: Vec<([usize; 2], [u64; 2])>,
    }

    impl Expected {
        fn check(&self) {
            let edges: Vec<_> =
                self.edges.iter().map(|&([from, to], [count, _])| (from, to, count)).collect();
            let found = with_moments(&self.own, &edges, 1, |member| {
                vec![Some(self.twice[member.function])]
            });
            let inclusive: Vec<u64> = self.edges.iter().map(|&(_, [_, cost])| cost).collect();
            assert_eq!(found, inclusive, "{edges:?}");
        }
    }

    #[test]
    fn a_ring_that_is_entered_once_costs_what_is_behind_each_jump() {
        for path in [
            &[0, 0][..],
            &[0, 0, 0, 0, 0, 0],
            &[0, 1, 0],
            &[0, 1, 0, 1],
            &[0, 1, 2, 0, 1, 2, 0, 1],
            &[0, 1, 2, 0, 1, 2, 0],
            &[0, 1, 2, 0, 1, 2, 0, 1, 2],
            // Entered from another function, left to another one, and both.
            &[0, 1, 2, 1, 2, 1, 2],
            &[0, 1, 0, 1, 0, 2],
            &[0, 1, 2, 3, 1, 2, 3, 1, 2, 4],
            // A ring after a ring; a function that jumps to itself after a ring.
            &[0, 1, 0, 1, 2, 3, 2, 3, 2, 4],
            &[0, 1, 2, 0, 1, 3, 3, 3, 3],
        ] {
            followed(path, |function, _| 3 + 10 * function as u64).check();
            followed(path, |function, visit| 1 + (7 * function + 5 * visit * visit) as u64).check();
        }
    }

    /// Of the functions of a ring with several ways through it, the order of visits is unknown.
    #[test]
    fn a_ring_of_several_ways_gets_the_cost_of_its_targets() {
        let edges = [(0, 1, 4), (1, 0, 2), (1, 2, 2), (2, 0, 2)];
        assert_eq!(of(&[10, 20, 30], &edges, 1), [20, 4, 30, 4]);
        let edges = [(0, 1, 4), (1, 1, 1), (1, 0, 3)];
        assert_eq!(of(&[10, 20], &edges, 1), [16, 0, 7]);
    }

    #[test]
    fn an_event_without_moments_gets_the_cost_of_its_targets() {
        assert_eq!(with_moments(&[30], &[(0, 0, 9)], 1, |_| vec![None]), [0]);
        let edges = [(0, 1, 4), (1, 0, 3)];
        assert_eq!(with_moments(&[10, 20], &edges, 1, |_| Vec::new()), [20, 7]);
    }

    /// Several jumps from one function to the other: their sum is exact.
    #[test]
    fn parallel_jumps_of_a_ring_share_their_cost() {
        let together = of(&[12, 12], &[(0, 1, 4), (1, 0, 3)], 1);
        let apart = of(&[12, 12], &[(0, 1, 1), (0, 1, 3), (1, 0, 3)], 1);
        assert_eq!([apart[0] + apart[1], apart[2]], together[..]);
        assert_eq!(apart[1], apart[0] * 3);
    }

    #[test]
    fn costs_beyond_all_numbers_are_the_largest() {
        assert_eq!(of(&[u64::MAX], &[(0, 0, u64::MAX - 1)], 1), [u64::MAX]);
        assert_eq!(of(&[u64::MAX], &[(0, 0, u64::MAX)], 1), [0]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Vec<_> = (0..200_000).map(|node| (node, node + 1, 1)).collect();
        assert_eq!(of(&[1; 200_001], &edges, 1)[0], 200_000);
    }

    #[test]
    fn a_large_ring_needs_no_stack() {
        let size = 200_000;
        let edges: Vec<_> = (0..size).map(|node| (node, (node + 1) % size, 1)).collect();
        let mut own = vec![1; size];
        own[0] = 2;
        let found = of(&own, &edges, 1);
        assert_eq!([found[0], found[1], found[size - 1]], [200_000, 199_999, 1]);
    }
}
