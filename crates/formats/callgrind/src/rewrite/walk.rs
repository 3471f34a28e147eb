//! The way that a program took through a ring of jumps.
//!
//! In a ring that is a simple cycle, each function jumps to only one of the others, so that the functions are visited
//! in a fixed order. If the ring was entered once, the numbers of jumps also show where it was left: the functions
//! from there on were visited once less than those before.

/// A function of a ring, and its visits: the executions of the function, each from a jump to its beginning (the first
/// one possibly from a call) to the next such jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub function: usize,
    /// The function of the ring that it jumps to.
    pub next: usize,
    pub visits: u64,
    /// Whether the ring was entered here.
    pub is_first: bool,
    /// Whether the ring was left here.
    pub is_last: bool,
}

/// The functions of a ring in the order of their visits, if the ring is a simple cycle and was entered once, at
/// `first`. `before` returns the only function of the ring that jumps to another one, and how often it does. `size`
/// is the number of functions. If the ring was left by a jump, `left` is the function that it came from.
pub(crate) fn walk(
    first: usize,
    size: usize,
    left: Option<usize>,
    before: impl Fn(usize) -> Option<(usize, u64)>,
) -> Option<Vec<Member>> {
    let (mut members, mut next) = (Vec::with_capacity(size), first);
    // Backwards, from the jump that closes the ring.
    let (mut function, again) = before(first)?;
    while function != first {
        let (previous, visits) = before(function)?;
        if members.len() >= size {
            return None;
        }
        members.push(Member { function, next, visits, is_first: false, is_last: false });
        (function, next) = (previous, function);
    }
    let visits = again.checked_add(1)?;
    members.push(Member { function, next, visits, is_first: true, is_last: false });
    members.reverse();
    let falls = members.is_sorted_by(|a, b| a.visits >= b.visits);
    let is_once = members.last().is_some_and(|last| last.visits >= again && last.visits > 0);
    let last = members.iter_mut().rfind(|member| member.visits == visits)?;
    last.is_last = true;
    let is_left_there = left.is_none_or(|left| left == last.function);
    (members.len() == size && falls && is_once && is_left_there).then_some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `counts` are the jumps to each function of the ring 0, 1, 2, … from the one before it.
    fn visits(counts: &[u64], first: usize, left: Option<usize>) -> Option<Vec<(usize, u64)>> {
        let size = counts.len();
        let before = |function: usize| Some(((function + size - 1) % size, counts[function]));
        let members = walk(first, size, left, before)?;
        assert_eq!(members.iter().filter(|member| member.is_first).count(), 1);
        assert!(members[0].is_first);
        assert!(members.iter().all(|member| member.next == (member.function + 1) % size));
        let last = members.iter().position(|member| member.is_last).expect("one");
        assert!(members[..=last].iter().all(|member| member.visits == members[0].visits));
        Some(members.iter().map(|member| (member.function, member.visits)).collect())
    }

    #[test]
    fn the_counts_show_where_a_ring_is_left() {
        assert_eq!(visits(&[3, 4, 4], 0, None), Some(vec![(0, 4), (1, 4), (2, 4)]));
        assert_eq!(visits(&[3, 4, 3], 0, None), Some(vec![(0, 4), (1, 4), (2, 3)]));
        assert_eq!(visits(&[3, 3, 3], 0, Some(0)), Some(vec![(0, 4), (1, 3), (2, 3)]));
        assert_eq!(visits(&[4, 4, 3], 2, Some(1)), Some(vec![(2, 4), (0, 4), (1, 4)]));
        assert_eq!(visits(&[7], 0, Some(0)), Some(vec![(0, 8)]));
    }

    #[test]
    fn counts_of_no_single_walk_are_refused() {
        // Left at another function than the counts say; more jumps on than there; fewer.
        assert_eq!(visits(&[3, 4, 3], 0, Some(2)), None);
        assert_eq!(visits(&[3, 3, 4], 0, None), None);
        assert_eq!(visits(&[3, 4, 2], 0, None), None);
        assert_eq!(visits(&[3, 5, 5], 0, None), None);
        assert_eq!(visits(&[u64::MAX, 5], 0, None), None);
        assert_eq!(visits(&[0, 1, 0], 0, None), None);
        // A function of the ring that more than one jumps to.
        assert_eq!(walk(0, 2, None, |function| (function != 1).then_some((1, 1))), None);
    }

    #[test]
    fn functions_that_do_not_lead_back_are_refused() {
        assert_eq!(walk(0, 3, None, |_| Some((1, 1))), None);
        assert_eq!(walk(0, 3, None, |function| Some((1 - function, 1))), None);
    }
}
