//! The inclusive costs of jumps that are calls.
//!
//! The total cost of a function that was jumped to is known: its own cost, and the cost of what it called. Each
//! function that jumped to it gets a share in proportion to its number of jumps. This is exact if only one function
//! jumps, or if the cost is the same each time. For a cycle of jumps, the number of iterations is unknown. There, a
//! jump gets the cost of its target without the cycle. A jump to a function's own beginning gets nothing, because its
//! cost is already the function's own.

/// A jump from one function of a context to the beginning of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    pub count: u64,
}

/// The inclusive cost of each edge. `own` has the cost of each function without the edges, one number per event.
/// `entries` is the number of calls of the first function.
pub(crate) fn inclusive(own: &[Vec<u64>], edges: &[Edge], entries: u64) -> Vec<Vec<u64>> {
    let events = own.first().map_or(0, Vec::len);
    let mut costs = vec![vec![0_u64; events]; edges.len()];
    let (ring_of, rings) = rings(own.len(), edges);
    // The cost of each function, plus that of the jumps that leave its cycle.
    let mut with_exits: Vec<Vec<u64>> = own.to_vec();
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); rings.len()];
    let mut entering: Vec<Vec<usize>> = vec![Vec::new(); own.len()];
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); own.len()];
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
            true if edge.from == edge.to => [None, None],
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
    }
    costs
}

/// Distributes `total` over the edges of `list`. Calls that were counted elsewhere have `others` shares.
fn share(total: &[u64], edges: &[Edge], list: &[usize], others: u64, costs: &mut [Vec<u64>]) {
    let counts = list.iter().filter_map(|&index| edges.get(index)).map(|edge| edge.count);
    let sum = counts.fold(u128::from(others), |sum, count| sum.saturating_add(u128::from(count)));
    let mut rest = total.to_vec();
    for (place, &index) in (1..).zip(list) {
        let (Some(edge), Some(cost)) = (edges.get(index), costs.get_mut(index)) else { continue };
        let is_last = place == list.len() && others == 0;
        for ((cost, rest), &total) in cost.iter_mut().zip(&mut rest).zip(total) {
            let part = u128::from(total).saturating_mul(u128::from(edge.count)).checked_div(sum);
            let part = part.and_then(|part| u64::try_from(part).ok()).unwrap_or(0);
            *cost = if is_last { *rest } else { part.min(*rest) };
            *rest = rest.saturating_sub(*cost);
        }
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

    fn of(own: &[u64], edges: &[(usize, usize, u64)], entries: u64) -> Vec<u64> {
        let own: Vec<Vec<u64>> = own.iter().map(|&cost| vec![cost]).collect();
        let edges: Vec<Edge> =
            edges.iter().map(|&(from, to, count)| Edge { from, to, count }).collect();
        inclusive(&own, &edges, entries).iter().map(|cost| cost[0]).collect()
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
    fn a_ring_is_not_counted_twice() {
        assert_eq!(of(&[30], &[(0, 0, 9)], 1), [0]);
        // Enters by the first function, cycles, and leaves to the last.
        let edges = [(0, 1, 2), (1, 2, 6), (2, 1, 4), (2, 3, 2)];
        assert_eq!(of(&[5, 60, 30, 7], &edges, 2), [97, 37, 40, 7]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Vec<_> = (0..200_000).map(|node| (node, node + 1, 1)).collect();
        let own = vec![1; 200_001];
        assert_eq!(of(&own, &edges, 1)[0], 200_000);
    }
}
