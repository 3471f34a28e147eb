//! Which processes are followed.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use crate::process::Relations;

/// Which processes are followed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Whose {
    /// These, and their descendants.
    Family(Vec<u32>),
    /// Those of a user.
    User(u32),
    /// All.
    All,
}

/// The processes that run, divided into those that are followed and others.
#[derive(Debug)]
pub struct Family {
    whose: Whose,
    members: BTreeSet<u32>,
    others: HashSet<u32>,
    /// A process that is never a member, and whose children are not.
    except: u32,
}

/// What changed since the processes were last listed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// New members.
    pub new: Vec<u32>,
    /// Members that have ended.
    pub ended: Vec<u32>,
}

impl Family {
    pub fn new(whose: Whose, except: u32) -> Self {
        Self { whose, members: BTreeSet::new(), others: HashSet::new(), except }
    }

    /// The members.
    pub fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().copied()
    }

    /// Makes a member one of the others.
    pub fn leave(&mut self, pid: u32) {
        self.members.remove(&pid);
        self.others.insert(pid);
    }

    /// Takes in the processes that run now. `relations` is asked about each new one.
    pub fn update(
        &mut self,
        running: &[u32],
        relations: impl Fn(u32) -> Option<Relations>,
    ) -> Change {
        let is_running: HashSet<u32> = running.iter().copied().collect();
        self.others.retain(|pid| is_running.contains(pid));
        let ended: Vec<u32> =
            self.members.iter().copied().filter(|pid| !is_running.contains(pid)).collect();
        let known = |pid: &u32| self.members.contains(pid) || self.others.contains(pid);
        let new: Vec<u32> = running.iter().copied().filter(|pid| !known(pid)).collect();
        let mut unclear: Vec<(u32, Option<Relations>)> = match &self.whose {
            Whose::Family(_) => new.into_iter().map(|pid| (pid, relations(pid))).collect(),
            Whose::User(_) | Whose::All => new.into_iter().map(|pid| (pid, None)).collect(),
        };
        let mut new = Vec::new();
        // A child may have a lower process id than its parent, and then precedes it in the list.
        loop {
            let before = new.len();
            unclear.retain(|(pid, relations)| {
                let is_member = self.is_member(*pid, *relations);
                if is_member {
                    self.members.insert(*pid);
                    new.push(*pid);
                }
                !is_member
            });
            if new.len() == before {
                break;
            }
        }
        self.others.extend(unclear.into_iter().map(|(pid, _)| pid));
        // Only now: their children may be among the new ones.
        for pid in &ended {
            self.members.remove(pid);
        }
        Change { new, ended }
    }

    fn is_member(&self, pid: u32, relations: Option<Relations>) -> bool {
        match &self.whose {
            _ if pid == self.except => false,
            Whose::All | Whose::User(_) => true,
            Whose::Family(named) if named.contains(&pid) => true,
            // A process whose parent has ended has another parent, but stays in its group and session.
            Whose::Family(_) => relations.is_some_and(|of| {
                [of.parent, of.group, of.session].iter().any(|pid| self.members.contains(pid))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of a group and a session that no process leads.
    fn child(parent: u32) -> Option<Relations> {
        Some(Relations { parent, group: 999, session: 999 })
    }

    #[test]
    fn descendants_are_members_in_whatever_order_they_are_listed() {
        let mut family = Family::new(Whose::Family(vec![10]), 20);
        let relations = |pid| match pid {
            5 => child(11),
            11 | 20 => child(10),
            21 => child(20),
            _ => child(1),
        };
        let change = family.update(&[1, 5, 10, 11, 20, 21, 30], relations);
        assert_eq!(change, Change { new: vec![10, 11, 5], ended: vec![] });
        // The parent of 12 has ended since, and 13 is known by the group that 11 led.
        let relations = |pid| match pid {
            12 => child(11),
            13 => Some(Relations { parent: 1, group: 11, session: 999 }),
            _ => child(1),
        };
        let change = family.update(&[1, 5, 10, 12, 13, 14], relations);
        assert_eq!(change, Change { new: vec![12, 13], ended: vec![11] });
        assert_eq!(family.members().collect::<Vec<_>>(), [5, 10, 12, 13]);
    }

    #[test]
    fn a_process_id_that_is_used_again_is_judged_again() {
        let mut family = Family::new(Whose::Family(vec![10]), 20);
        assert_eq!(family.update(&[10, 11, 12], |pid| child(22 - pid)).new, [10, 12]);
        assert_eq!(family.update(&[10], |_| None).ended, [12]);
        assert_eq!(family.update(&[10, 11, 12], |pid| child(21 - pid)).new, [11]);
        family.leave(11);
        let change = family.update(&[10, 11, 12], |_| None);
        assert_eq!(change, Change::default());
        assert_eq!(family.members().collect::<Vec<_>>(), [10]);
    }

    #[test]
    fn everyone_is_a_member_but_the_one_excepted() {
        let mut family = Family::new(Whose::All, 20);
        assert_eq!(family.update(&[10, 20, 30], |_| None).new, [10, 30]);
    }
}
