//! The programs and libraries that recorded processes had mapped, as they are on this machine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use native_files::{DebugFiles, Elf, FileFrames, Functions, Lines, installed_debug_file};
use perf_data::Input;
use rustc_hash::FxBuildHasher;

use super::{ReplacedFiles, SourceFile, SourceFiles, base_name};
use crate::interner::{Interner, NameId};

/// The functions of a recorded file.
pub type RecordedFunctions = Rc<Functions<SourceFile>>;

/// Opens files of a recording, unless they were replaced since. Large programs have a million symbols, so the functions of a file are read once and kept.
#[derive(Debug)]
pub struct RecordedFiles<'a> {
    files: &'a dyn SourceFiles,
    /// Names of mappings in the recording.
    names: &'a Interner,
    /// The recorded build-ids, by path.
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
    replaced: &'a ReplacedFiles,
    /// What was read so far; `None` if a file cannot be used.
    functions: RefCell<HashMap<NameId, Option<RecordedFunctions>, FxBuildHasher>>,
    /// Whether those that were asked about are no object files.
    no_objects: RefCell<HashMap<NameId, bool, FxBuildHasher>>,
}

impl<'a> RecordedFiles<'a> {
    /// The files of this recording, whose mappings have these names; `files` opens them, but none that was `replaced`.
    pub fn new(
        input: &Input,
        names: &'a Interner,
        replaced: &'a ReplacedFiles,
        files: &'a dyn SourceFiles,
    ) -> Self {
        let ids = input.features().build_ids(input.endian());
        let build_ids = ids.into_iter().map(|file| (file.filename, file.id)).collect();
        Self {
            files,
            names,
            build_ids,
            replaced,
            functions: RefCell::default(),
            no_objects: RefCell::default(),
        }
    }

    /// How files are opened.
    pub fn opened_by(&self) -> &'a dyn SourceFiles {
        self.files
    }

    /// The functions of the file that is mapped under this name. `None` if it cannot be read, or has another build-id than the recorded one: it was
    /// replaced, or is another machine's.
    pub fn functions(&self, name: NameId) -> Option<RecordedFunctions> {
        let mut read = self.functions.borrow_mut();
        let functions = read.entry(name).or_insert_with(|| {
            let functions = Functions::read(self.mapped(name)?).ok()?;
            self.is_recorded(name, functions.build_id()).then(|| Rc::new(functions))
        });
        functions.clone()
    }

    /// The same for what the file has to unwind stacks. It is not kept.
    pub fn frames(&self, name: NameId) -> Option<FileFrames> {
        let elf = Elf::read(self.mapped(name)?).ok()?;
        let mut frames = FileFrames::read(&elf)?;
        if !self.is_recorded(name, frames.build_id()) {
            return None;
        }
        if frames.is_stripped()
            && let Some(path) = frames.build_id().and_then(installed_debug_file)
            && let Some(debug) = self.open(&path).and_then(|file| Elf::read(file).ok())
            && let Some(debug) = FileFrames::read(&debug)
        {
            frames.add_debug_file(debug);
        }
        Some(frames)
    }

    /// The same for its source lines, and for the functions of the separate file that has its symbols. They are not kept.
    pub fn debug_info(&self, name: NameId) -> (Option<Lines>, Option<Functions<SourceFile>>) {
        let Some(functions) = self.functions(name) else { return (None, None) };
        let elf = functions.elf();
        let (has_symbols, has_lines) = (elf.has_symbols(), elf.has_lines());
        let path = self.path(name);
        let open = |path: &Path| self.files.open(path, None);
        // Servers are for profiles, which are made later: `inject` takes what is on this machine.
        let debug_files = DebugFiles { open: &open, ask_servers: false };
        let is_complete = has_symbols && has_lines;
        let separate =
            (!is_complete).then(|| debug_files.find(elf, path.as_os_str().as_bytes())).flatten();
        let lines = |elf, path: &Path| Lines::read(elf, debug_files.shared(elf, path).as_ref());
        let lines = match &separate {
            Some((path, debug)) if !has_lines => lines(debug, path),
            _ => lines(elf, path),
        };
        let symbols = separate.filter(|_| !has_symbols);
        (lines, symbols.and_then(|(_, debug)| Functions::of(debug).ok()))
    }

    fn path(&self, name: NameId) -> &Path {
        Path::new(OsStr::from_bytes(self.names.get(name)))
    }

    /// Whether there is a file under this name.
    pub fn is_there(&self, name: NameId) -> bool {
        self.files.is_file(self.path(name))
    }

    /// Whether the file that is mapped under this name has no symbols, as far as can be known: it is no object file (a code cache, an image of a heap), or it
    /// is not there any more and neither its name nor a recorded build-id says that it was one (shared memory, a file that is removed once it is mapped).
    pub fn is_no_object(&self, name: NameId) -> bool {
        let mut read = self.no_objects.borrow_mut();
        *read.entry(name).or_insert_with(|| {
            let mut magic = [0; 4];
            match self.mapped(name) {
                Some(file) => match file.read_exact_at(&mut magic, 0) {
                    Ok(()) => magic != *b"\x7fELF",
                    Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
                },
                None => !self.is_known_object(name),
            }
        })
    }

    /// Whether a file is an object file as far as its name and the recording tell: perf records build-ids of object files only.
    fn is_known_object(&self, name: NameId) -> bool {
        let path = self.names.get(name);
        let base = base_name(path.strip_suffix(b" (deleted)").unwrap_or(path));
        // The kernel's own code, such as `[vdso]`, has no path.
        self.build_ids.contains_key(path) || is_library(base) || !path.starts_with(b"/")
    }

    /// The file that is mapped under this name, unless it was replaced.
    fn mapped(&self, name: NameId) -> Option<SourceFile> {
        let file = self.open(self.path(name))?;
        (!self.replaced.is_replaced(self.names.get(name), &file)).then_some(file)
    }

    fn open(&self, path: &Path) -> Option<SourceFile> {
        self.files.open(path, None).ok()
    }

    /// Whether a file with this build-id is the recorded one, as far as the recording tells.
    fn is_recorded(&self, name: NameId, build_id: Option<&[u8]>) -> bool {
        let recorded = self.build_ids.get(self.names.get(name));
        recorded.is_none_or(|recorded| is_build_id(recorded, build_id))
    }
}

/// Whether a file without its folder has a library's name.
pub fn is_library(base: &[u8]) -> bool {
    base.ends_with(b".so") || base.windows(4).any(|part| part == b".so.")
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::{Inode, PlainFiles, Untrusted};
    use super::*;

    /// Counts how often a file is opened.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl SourceFiles for Counting {
        fn open(&self, path: &Path, owner: Option<u32>) -> io::Result<SourceFile> {
            self.0.fetch_add(1, Ordering::Relaxed);
            PlainFiles.open(path, owner)
        }

        fn is_file(&self, path: &Path) -> bool {
            PlainFiles.is_file(path)
        }

        fn same_file(&self, a: &Path, b: &Path) -> bool {
            PlainFiles.same_file(a, b)
        }

        fn trust(&self, _: &Path, _: u32, _: Option<Inode>) -> Result<Option<u32>, Untrusted> {
            Ok(None)
        }
    }

    #[test]
    fn functions_are_read_once_unless_the_file_was_replaced() {
        let (counting, mut names) = (Counting::default(), Interner::default());
        let [this, replaced, missing] = ["/proc/self/exe", "/proc/thread-self/exe", "/none"]
            .map(|name| names.intern(name.as_bytes()));
        let replaced_files = ReplacedFiles::default();
        let files = RecordedFiles {
            files: &counting,
            names: &names,
            replaced: &replaced_files,
            build_ids: [(names.get(replaced).to_vec(), vec![7; 20])].into(),
            functions: RefCell::default(),
            no_objects: RefCell::default(),
        };
        for _ in 0..2 {
            assert!(files.functions(this).is_some());
            assert!(files.functions(replaced).is_none() && files.functions(missing).is_none());
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 3);
        assert!(files.frames(this).is_some() && files.frames(replaced).is_none());
    }

    #[test]
    fn recorded_build_ids_are_padded() {
        let id = [7; 20];
        assert!(is_build_id(&id, Some(&id)) && is_build_id(&id, Some(&[7; 32])));
        assert!(is_build_id(&[1, 2, 0, 0], Some(&[1, 2])));
        assert!(!is_build_id(&[1, 2, 3, 0], Some(&[1, 2])));
        assert!(!is_build_id(&id, None) && !is_build_id(&[1], Some(&[1, 2])));
    }
}
