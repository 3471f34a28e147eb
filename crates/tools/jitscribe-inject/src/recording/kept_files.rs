//! Programs and libraries that were gone from their paths while they were recorded, and where they are kept.
//!
//! A recording names a mapped file by its path. If the file was deleted, replaced by another, or is in a memfd, then no reader finds it there. Events that map
//! such a file get the path at which it is kept, so that all readers take it for an ordinary file.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use perf_data::{FileIdentity, Mmap};

use crate::files::is_build_id;

/// What the kernel adds to the name of a file that was deleted.
const DELETED: &[u8] = b" (deleted)";

/// A file that was gone from its path while a recorded process had it mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The process that had it mapped.
    pub pid: u32,
    /// Its inode number.
    pub inode: u64,
    /// Its name as the kernel lists it with the mapping, with or without what it adds to names of deleted files.
    pub name: Vec<u8>,
    /// The absolute path at which it is kept. `None` if it is not kept: then it gets a name under which no reader finds the file that replaced it.
    pub path: Option<PathBuf>,
    /// Its build-id, if it has one.
    pub build_id: Option<Vec<u8>>,
}

/// The files that were gone, by their names.
#[derive(Clone, Debug, Default)]
pub struct KeptFiles {
    files: Vec<KeptFile>,
    by_name: HashMap<Vec<u8>, Vec<usize>>,
}

impl KeptFiles {
    /// All paths at which files are kept, with their build-ids.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.files.iter().filter_map(|file| {
            Some((file.path.as_ref()?.as_os_str().as_bytes(), file.build_id.as_deref()))
        })
    }

    /// The name under which an event is to map its file; `None` if the file was not gone.
    pub(crate) fn name_of(&self, map: &Mmap<'_>) -> Option<Vec<u8>> {
        let among = self.by_name.get(without_deleted(map.filename))?;
        let among = among.iter().filter_map(|&number| self.files.get(number));
        let is_it = |file: &&KeptFile| match map.detail.map(|detail| detail.file) {
            Some(FileIdentity::Inode { inode, .. }) => inode == file.inode,
            Some(FileIdentity::BuildId(id)) => {
                file.build_id.as_deref().is_none_or(|own| is_build_id(id.as_bytes(), Some(own)))
            }
            None => file.pid == map.pid,
        };
        // Of files that had the same inode number one after the other, that of the process.
        let file = among.filter(is_it).max_by_key(|file| file.pid == map.pid)?;
        Some(match &file.path {
            Some(path) => path.as_os_str().as_bytes().to_vec(),
            None => [without_deleted(&file.name), DELETED].concat(),
        })
    }
}

impl FromIterator<KeptFile> for KeptFiles {
    fn from_iter<I: IntoIterator<Item = KeptFile>>(files: I) -> Self {
        let files: Vec<KeptFile> = files.into_iter().collect();
        let mut by_name: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            by_name.entry(without_deleted(&file.name).to_vec()).or_default().push(number);
        }
        Self { files, by_name }
    }
}

/// A name without what the kernel adds if the file was deleted.
fn without_deleted(name: &[u8]) -> &[u8] {
    name.strip_suffix(DELETED).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use perf_data::{MmapDetail, misc};

    use super::*;

    fn file(pid: u32, inode: u64, name: &str, path: Option<&str>) -> KeptFile {
        let (name, path) = (name.as_bytes().to_vec(), path.map(PathBuf::from));
        KeptFile { pid, inode, name, path, build_id: None }
    }

    fn name(kept: &KeptFiles, pid: u32, inode: Option<u64>, filename: &str) -> Option<String> {
        let file = |inode| FileIdentity::Inode { major: 8, minor: 1, inode, generation: 0 };
        let detail = |inode| MmapDetail { protection: 5, flags: 2, file: file(inode) };
        let map = Mmap {
            misc: misc::USER,
            pid,
            tid: pid,
            address: 0x1000,
            len: 0x1000,
            page_offset: 0,
            detail: inode.map(detail),
            filename: filename.as_bytes(),
        };
        kept.name_of(&map).map(|name| String::from_utf8_lossy(&name).into_owned())
    }

    #[test]
    fn files_are_known_by_name_and_inode() {
        let kept: KeptFiles = [
            file(1, 7, "/tmp/a.so (deleted)", Some("/out/gone/0/a.so")),
            file(2, 8, "/tmp/b.so", None),
            file(3, 9, "/memfd:x (deleted)", Some("/out/gone/1/x")),
            file(4, 7, "/tmp/a.so", Some("/out/gone/2/a.so")),
        ]
        .into_iter()
        .collect();
        let first = Some("/out/gone/0/a.so".to_owned());
        // perf records a name before the file is deleted, or after.
        assert_eq!(name(&kept, 1, Some(7), "/tmp/a.so"), first);
        assert_eq!(name(&kept, 1, Some(7), "/tmp/a.so (deleted)"), first);
        assert_eq!(name(&kept, 1, None, "/tmp/a.so"), first);
        assert_eq!(name(&kept, 4, Some(7), "/tmp/a.so").as_deref(), Some("/out/gone/2/a.so"));
        // The file that replaced it, and that of another process that cannot be told from it.
        assert_eq!(name(&kept, 1, Some(6), "/tmp/a.so"), None);
        assert_eq!(name(&kept, 9, None, "/tmp/a.so"), None);
        assert_eq!(name(&kept, 1, Some(7), "/tmp/c.so"), None);
        // Another process that has mapped the same file.
        assert_eq!(name(&kept, 9, Some(9), "/memfd:x (deleted)").as_deref(), Some("/out/gone/1/x"));
        assert_eq!(name(&kept, 2, Some(8), "/tmp/b.so").as_deref(), Some("/tmp/b.so (deleted)"));
    }
}
