//! The programs and libraries that recorded processes had mapped, as they are on this machine.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perf_data::Input;

use super::{FileFrames, FileFunctions, FileSymbols, SourceFile, SourceFiles};

/// Opens files of a recording, unless they were replaced since.
#[derive(Clone, Debug)]
pub struct RecordedFiles<'a> {
    files: &'a dyn SourceFiles,
    /// The recorded build-ids, by path.
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
}

/// What was read from an ELF file.
pub trait OfElf {
    /// The file's build-id, if it has one.
    fn build_id(&self) -> Option<&[u8]>;
}

impl<'a> RecordedFiles<'a> {
    /// The files of this recording, which `files` opens.
    pub fn new(input: &Input, files: &'a dyn SourceFiles) -> Self {
        let ids = input.features().build_ids(input.endian());
        let build_ids = ids.into_iter().map(|file| (file.filename, file.id)).collect();
        Self { files, build_ids }
    }

    /// What `read` finds in the file at `path`. `None` if it cannot be read, or has another build-id than the recorded one: it was replaced, or is
    /// another machine's.
    pub fn read<T: OfElf>(
        &self,
        path: &[u8],
        read: impl FnOnce(SourceFile) -> io::Result<T>,
    ) -> Option<T> {
        let file = self.files.open(Path::new(OsStr::from_bytes(path)), None).ok()?;
        let content = read(file).ok()?;
        let recorded = self.build_ids.get(path).map(Vec::as_slice);
        recorded.is_none_or(|id| is_build_id(id, content.build_id())).then_some(content)
    }
}

impl OfElf for FileSymbols {
    fn build_id(&self) -> Option<&[u8]> {
        self.build_id()
    }
}

impl OfElf for FileFunctions {
    fn build_id(&self) -> Option<&[u8]> {
        self.build_id()
    }
}

impl OfElf for FileFrames {
    fn build_id(&self) -> Option<&[u8]> {
        self.build_id()
    }
}

/// Whether a recorded build-id, which perf pads with zeros up to 20 bytes, is that of a file.
pub fn is_build_id(recorded: &[u8], of_file: Option<&[u8]>) -> bool {
    of_file.is_some_and(|id| {
        let id = id.get(..20).unwrap_or(id);
        recorded.strip_prefix(id).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_build_ids_are_padded() {
        let id = [7; 20];
        assert!(is_build_id(&id, Some(&id)) && is_build_id(&id, Some(&[7; 32])));
        assert!(is_build_id(&[1, 2, 0, 0], Some(&[1, 2])));
        assert!(!is_build_id(&[1, 2, 3, 0], Some(&[1, 2])));
        assert!(!is_build_id(&id, None) && !is_build_id(&[1], Some(&[1, 2])));
    }
}
