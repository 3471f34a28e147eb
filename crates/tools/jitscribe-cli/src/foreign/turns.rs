//! The order in which the processes of different users are inspected.

use std::collections::HashMap;
use std::hash::Hash;

/// Orders processes or logs so that the first one of each user comes before the second one of any user. The number of workers is
/// limited, and unresponsive processes of one user must not occupy all workers before those of others have had a turn.
pub fn in_turns<Item: Copy, User: Eq + Hash>(
    all: &[Item],
    user: impl Fn(Item) -> User,
) -> Vec<Item> {
    let mut rounds: HashMap<User, usize> = HashMap::new();
    let mut turns: Vec<_> = all
        .iter()
        .map(|&one| {
            let round = rounds.entry(user(one)).or_default();
            *round += 1;
            (*round, one)
        })
        .collect();
    turns.sort_by_key(|(round, _)| *round);
    turns.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_take_turns() {
        let turns = in_turns(&[1, 2, 3, 4, 5, 6], |pid: u32| if pid < 5 { 1000 } else { pid });
        assert_eq!(turns, [1, 5, 6, 2, 3, 4]);
        // Those whose user is not known are as one more user's.
        let user = |pid: u32| (pid < 30).then_some(pid / 10);
        assert_eq!(in_turns(&[10, 11, 12, 20, 30, 31], user), [10, 20, 30, 11, 31, 12]);
        assert!(in_turns(&[], user).is_empty());
    }
}
