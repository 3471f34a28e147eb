//! Files that were replaced while or before perf recorded their processes.
//!
//! perf reads build-ids when it has recorded: those of the files that are at the recorded paths then. So a file that replaced another before has the recorded
//! build-id, and is another file than the one that ran. It is known by its inode number, which the recording has with each mapping.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use rustix::fs::fstatfs;

/// perf ends, and the clock of file times is read, this much later than what is recorded last.
const MARGIN: Duration = Duration::from_secs(2);

/// The file systems whose inode numbers are those of mappings, and whose times are those of this machine's clock: `f_type` of `statfs(2)`. Not overlayfs:
/// there, mappings have the inode numbers of other file systems.
const LOCAL: [u32; 6] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // btrfs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0x0102_1994, // tmpfs
];

/// The inode numbers of recorded files, by which others are told from them.
#[derive(Clone, Debug, Default)]
pub struct ReplacedFiles {
    /// By path.
    inodes: HashMap<Vec<u8>, HashSet<u64>>,
    /// When the recording ended; `None` if this is not known, or it is of another machine.
    until: Option<SystemTime>,
}

impl ReplacedFiles {
    /// The recorded files with these paths and inode numbers, of a recording of this machine that ended at `until`.
    pub(crate) fn new<'p>(
        files: impl Iterator<Item = (&'p [u8], u64)>,
        until: Option<SystemTime>,
    ) -> Self {
        let mut inodes: HashMap<Vec<u8>, HashSet<u64>> = HashMap::new();
        for (path, inode) in files.filter(|_| until.is_some()) {
            match inodes.get_mut(path) {
                Some(known) => drop(known.insert(inode)),
                None => drop(inodes.insert(path.to_vec(), HashSet::from([inode]))),
            }
        }
        Self { inodes, until }
    }

    /// Whether this file, which is at `path` now, had replaced the recorded one when perf read its build-id.
    #[must_use]
    pub fn is_replaced(&self, path: &[u8], file: &File) -> bool {
        let recorded = self.until.zip(self.inodes.get(path));
        let Some((until, inodes)) = recorded else { return false };
        let Ok(status) = file.metadata() else { return false };
        if inodes.contains(&status.ino()) {
            return false;
        }
        let is_local = fstatfs(file).is_ok_and(|system| {
            u32::try_from(system.f_type).is_ok_and(|kind| LOCAL.contains(&kind))
        });
        let changed = u64::try_from(status.ctime()).ok().map(Duration::from_secs);
        let changed = changed.and_then(|changed| SystemTime::UNIX_EPOCH.checked_add(changed));
        let until = until.checked_add(MARGIN);
        is_local && changed.zip(until).is_some_and(|(changed, until)| changed <= until)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_with_another_inode_is_another_file_unless_it_is_newer() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            fs::write(folder.path().join(name), "x").expect("written");
            File::open(folder.path().join(name)).expect("a file")
        };
        let (old, new) = (file("old"), file("new"));
        if !fstatfs(&old).is_ok_and(|it| LOCAL.contains(&u32::try_from(it.f_type).unwrap_or(0))) {
            return;
        }
        let recorded = |until| {
            let inode = old.metadata().expect("a file").ino();
            ReplacedFiles::new([(&b"/a"[..], inode)].into_iter(), until)
        };
        let now = SystemTime::now();
        let ended = recorded(Some(now));
        assert!(!ended.is_replaced(b"/a", &old) && ended.is_replaced(b"/a", &new));
        assert!(!ended.is_replaced(b"/b", &new));
        // Installed again since: its build-id is compared with that of the recorded file.
        let hour = Duration::from_secs(3600);
        assert!(!recorded(now.checked_sub(hour)).is_replaced(b"/a", &new));
        assert!(!recorded(None).is_replaced(b"/a", &new));
    }
}
