//! The files of language runtimes in the recorded processes.

use code_timeline::AddressSpaceId;
use perf_data::FileIdentity;
use profile::activity::is_of_runtime;

use crate::files::{looks_like_marker, pid_of_jitted};
use crate::limits::GENERATIONS;
use crate::recording::Recording;

/// The file that holds the language runtime of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeFile<'r> {
    /// Its path.
    pub path: &'r [u8],
    /// Its build-id, if the mapping was recorded with it.
    pub build_id: Option<&'r [u8]>,
}

impl Recording {
    /// The file that holds the language runtime of a process: of a runtime that is known by the name of its library or program (`libjvm.so`, `node`), or
    /// else the program itself. `None` if no file of the process is known.
    #[must_use]
    pub fn runtime_file(&self, space: AddressSpaceId) -> Option<RuntimeFile<'_>> {
        let index = &self.index;
        let mut space = space;
        // A forked process has the files of its parent.
        for _ in 0..GENERATIONS {
            let files = index.maps_of(space).filter(|map| {
                let path = index.name(map);
                let is_file = !map.anonymous && path.starts_with(b"/") && !is_loader(path);
                is_file && pid_of_jitted(path).is_none() && !looks_like_marker(path)
            });
            let mut files = files.peekable();
            let program = files.peek().copied();
            let known = files.find(|map| is_of_runtime(index.name(map)));
            if let Some(map) = known.or(program) {
                let build_id = match &map.file {
                    Some(FileIdentity::BuildId(id)) => Some(id.as_bytes()),
                    _ => None,
                };
                return Some(RuntimeFile { path: index.name(map), build_id });
            }
            (space, _) = index.processes.parent(space)?;
        }
        None
    }
}

/// Whether it is a dynamic linker, which is mapped before the program that it was called with.
fn is_loader(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.starts_with(b"ld-") || name.starts_with(b"ld.so")
}
