//! The root folders of processes that are not ours, held open.
//!
//! The descriptor of a root folder alone is not enough: with the last process in a mount namespace, the kernel takes its mounts apart, and the
//! folder `/tmp` below that root is another one. So the namespace is held as well. Nothing is released before the worker ends:
//! releasing a file system that a user serves may block.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, OFlags, StatxFlags, fstat, statat, statx};

use crate::foreign::Target;

/// The most roots that are held.
const MOST: usize = 1024;

/// A user other than root and us may have this part of them: another one may have containers too.
const SHARE: usize = 4;

/// What identifies a root folder as a process sees it: its mount namespace, its mount, its device and its inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Root {
    namespace: u64,
    mount: u64,
    device: (u32, u32),
    inode: u64,
}

/// The roots that are held.
#[derive(Debug)]
pub struct Roots {
    /// Our own, which need not be held.
    own: Root,
    held: HashMap<Root, Held>,
    count: Count,
    /// Those that were not held because there were too many.
    left_out: HashSet<Root>,
}

#[derive(Debug)]
struct Held {
    folder: OwnedFd,
    /// `None` if it is our own, which exists as long as we do.
    _namespace: Option<OwnedFd>,
}

impl Root {
    /// The root of a process. No file system is asked about it, so this does not block.
    pub fn of(target: &Target) -> io::Result<Self> {
        let namespace = statat(target, "ns/mnt", AtFlags::empty())?.st_ino;
        Ok(Self::seen(namespace, &statx(target, "root", CACHED, WANTED)?))
    }

    fn of_folder(folder: &OwnedFd, namespace: u64) -> io::Result<Self> {
        Ok(Self::seen(namespace, &statx(folder, "", CACHED | AtFlags::EMPTY_PATH, WANTED)?))
    }

    fn seen(namespace: u64, root: &rustix::fs::Statx) -> Self {
        // Before Linux 5.8 there is no number of the mount; the others then suffice, except in rare cases.
        let has_mount = root.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Self {
            namespace,
            mount: if has_mount { root.stx_mnt_id } else { 0 },
            device: (root.stx_dev_major, root.stx_dev_minor),
            inode: root.stx_ino,
        }
    }
}

/// Only what the kernel knows already: a file system that a user serves is not asked.
const CACHED: AtFlags = AtFlags::STATX_DONT_SYNC;
const WANTED: StatxFlags = StatxFlags::INO.union(StatxFlags::MNT_ID);

impl Roots {
    /// None yet. At most `descriptors` will be open.
    ///
    /// # Errors
    /// If our own root cannot be examined.
    pub fn new(us: u32, descriptors: u64) -> io::Result<Self> {
        let most = usize::try_from(descriptors / 2).unwrap_or(MOST).min(MOST);
        Ok(Self {
            own: Root::of(&Target::open(std::process::id())?)?,
            held: HashMap::new(),
            count: Count { us, most, all: 0, by_user: HashMap::new() },
            left_out: HashSet::new(),
        })
    }

    /// Holds the root of a process of `user`, unless it is ours. Returns it if it is held.
    ///
    /// # Errors
    /// If the process has ended, changes its root at this moment, or may not be examined.
    pub fn hold(&mut self, target: &Target, user: u32) -> io::Result<Option<Root>> {
        let root = Root::of(target)?;
        if root == self.own {
            return Ok(None);
        }
        if self.held.contains_key(&root) {
            return Ok(Some(root));
        }
        if !self.count.has_space(user) {
            // A hostile user may have any number.
            if self.left_out.len() < MOST {
                self.left_out.insert(root);
            }
            return Ok(None);
        }
        let namespace = target.file("ns/mnt", OFlags::RDONLY)?;
        let folder = target.file("root", OFlags::PATH | OFlags::DIRECTORY)?;
        let inode = fstat(&namespace)?.st_ino;
        let is_it = inode == root.namespace && Root::of_folder(&folder, inode)? == root;
        if !is_it {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        self.count.add(user);
        let _namespace = (inode != self.own.namespace).then_some(namespace);
        self.held.insert(root, Held { folder, _namespace });
        Ok(Some(root))
    }

    /// The number of the descriptor of a root's folder.
    pub fn descriptor(&self, root: &Root) -> Option<i32> {
        self.held.get(root).map(|held| held.folder.as_raw_fd())
    }

    /// The number of roots that were not held because there were too many.
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }
}

/// How many roots are held, for each user.
#[derive(Debug)]
struct Count {
    us: u32,
    most: usize,
    all: usize,
    by_user: HashMap<u32, usize>,
}

impl Count {
    fn has_space(&self, user: u32) -> bool {
        let trusted = user == 0 || user == self.us;
        let share = if trusted { self.most } else { self.most / SHARE };
        self.all < self.most && self.by_user.get(&user).copied().unwrap_or(0) < share
    }

    fn add(&mut self, user: u32) {
        self.all = self.all.saturating_add(1);
        let of_user = self.by_user.entry(user).or_default();
        *of_user = of_user.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    #[test]
    fn a_user_leaves_space_for_others() {
        let mut count = Count { us: 1000, most: 16, all: 0, by_user: HashMap::new() };
        for _ in 0..4 {
            assert!(count.has_space(7));
            count.add(7);
        }
        assert!(!count.has_space(7) && count.has_space(8));
        for _ in 0..12 {
            assert!(count.has_space(1000));
            count.add(1000);
        }
        assert!(!count.has_space(1000) && !count.has_space(0) && !count.has_space(8));
    }

    #[test]
    fn our_own_root_is_not_held() {
        let mut roots = Roots::new(0, 100).expect("our root");
        let this = Target::open(process::id()).expect("this process");
        assert_eq!(roots.hold(&this, 0).expect("examined"), None);
        let mut child = process::Command::new("sleep").arg("600").spawn().expect("a child");
        let target = Target::open(child.id()).expect("the child");
        assert_eq!(roots.hold(&target, 0).expect("examined"), None);
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(roots.hold(&target, 0).is_err());
        assert_eq!((roots.held.len(), roots.left_out()), (0, 0));
    }
}
