//! The files that were mapped: opened, checked and read when they are first needed.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use jitscribe_inject::Recording;
use jitscribe_inject::files::{SourceFiles, base_name, is_build_id, is_image};
use profile::ModuleKind;
use rustc_hash::FxHashMap;

use crate::debug_files;
use crate::elf::Elf;
use crate::lines::Lines;
use crate::symbols::FoundSymbol;
use crate::vdso;

/// The files with code.
#[derive(Debug)]
pub struct Modules<'f> {
    files: &'f dyn SourceFiles,
    /// The recorded build-ids, by path.
    build_ids: FxHashMap<Vec<u8>, Vec<u8>>,
    is_this_machine: bool,
    list: Vec<Module>,
    by_path: FxHashMap<Vec<u8>, usize>,
    /// Of images, by name without the folder.
    images: FxHashMap<Vec<u8>, usize>,
}

/// A file with code.
#[derive(Debug)]
pub struct Module {
    /// Its path, normalized.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: ModuleKind,
    elf: Option<Elf>,
    debug: Option<Elf>,
    lines: OnceCell<Option<Lines>>,
    /// Why it cannot be looked into.
    problem: Option<String>,
}

impl<'f> Modules<'f> {
    /// None yet.
    pub fn new(recording: &Recording, files: &'f dyn SourceFiles) -> Self {
        let input = recording.reader();
        let ids = input.features().build_ids(input.endian());
        let build_ids = ids.into_iter().map(|file| (normal(&file.filename), file.id)).collect();
        Self {
            files,
            build_ids,
            is_this_machine: recording.is_of_this_machine(),
            list: Vec::new(),
            by_path: FxHashMap::default(),
            images: FxHashMap::default(),
        }
    }

    /// The number of the file at `path`, which was mapped with this build-id, if that is known.
    pub fn number(&mut self, path: &[u8], build_id: Option<&[u8]>) -> usize {
        let path = normal(path);
        if let Some(&number) = self.by_path.get(&path) {
            return number;
        }
        let recorded = build_id.or_else(|| self.build_ids.get(&path).map(Vec::as_slice));
        let module = Module::open(path.clone(), recorded, self.files, self.is_this_machine);
        let number = self.list.len();
        if module.kind == ModuleKind::Image {
            self.images.entry(module.name().to_vec()).or_insert(number);
        }
        self.list.push(module);
        self.by_path.insert(path, number);
        number
    }

    /// The number of the image with this name.
    pub fn image(&self, name: &[u8]) -> Option<usize> {
        self.images.get(name).copied()
    }

    /// The file with this number.
    pub fn get(&self, number: usize) -> Option<&Module> {
        self.list.get(number)
    }

    /// All files with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Module)> {
        self.list.iter().enumerate()
    }

    /// How files are opened.
    pub fn files(&self) -> &'f dyn SourceFiles {
        self.files
    }
}

impl Module {
    fn open(
        path: Vec<u8>,
        recorded: Option<&[u8]>,
        files: &dyn SourceFiles,
        is_this_machine: bool,
    ) -> Self {
        let kind = if is_image(&path) { ModuleKind::Image } else { ModuleKind::File };
        let mut module =
            Self { path, kind, elf: None, debug: None, lines: OnceCell::new(), problem: None };
        let file = match &*module.path {
            vdso::NAME if is_this_machine => vdso::read(),
            // The kernel's own names of memory.
            path if !path.starts_with(b"/") => return module,
            path => files.open(Path::new(OsStr::from_bytes(path)), None),
        };
        match file.and_then(Elf::read) {
            Ok(elf) if recorded.is_some_and(|id| !is_build_id(id, elf.build_id.as_deref())) => {
                let replaced = "has another build-id than the recorded file: it was replaced, or is another machine's";
                module.problem = Some(replaced.into());
            }
            Ok(elf) => {
                if !elf.has_symbols() || !elf.has_lines() {
                    // Debug info alone is worth it, too, but not for images, which have none but their own.
                    let is_file = kind == ModuleKind::File;
                    module.debug =
                        is_file.then(|| debug_files::find(&elf, &module.path, files)).flatten();
                }
                module.elf = Some(elf);
            }
            Err(error) => module.problem = Some(error.to_string()),
        }
        module
    }

    /// Why it cannot be looked into, if it cannot.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether functions that the file does not export have no names.
    pub fn is_stripped(&self) -> bool {
        let has_symbols = |elf: &Option<Elf>| elf.as_ref().is_some_and(Elf::has_symbols);
        self.elf.is_some() && !has_symbols(&self.elf) && !has_symbols(&self.debug)
    }

    /// Its name without its folder.
    pub fn name(&self) -> &[u8] {
        base_name(&self.path)
    }

    /// Its build-id; empty if it has none, or is not known.
    pub fn build_id(&self) -> &[u8] {
        self.elf.as_ref().and_then(|elf| elf.build_id.as_deref()).unwrap_or_default()
    }

    /// The address of an offset in the file; the offset itself if the file is not known.
    pub fn address(&self, offset: u64) -> u64 {
        self.elf.as_ref().and_then(|elf| elf.address(offset)).unwrap_or(offset)
    }

    /// The symbol at an address.
    pub fn symbol(&self, address: u64) -> Option<FoundSymbol> {
        let elf = self.elf.as_ref()?;
        let debug = self.debug.as_ref().filter(|debug| debug.has_symbols() && !elf.has_symbols());
        debug.and_then(|debug| debug.symbol(address)).or_else(|| elf.symbol(address))
    }

    /// The name of a branch's target outside of the functions in the file.
    pub fn label(&self, address: u64) -> Option<Vec<u8>> {
        self.elf.as_ref()?.label(address)
    }

    /// Passes the names of all functions to `each`.
    pub fn each_name(&self, each: impl FnMut(&[u8])) {
        if let Some(elf) = &self.elf {
            elf.each_name(each);
        }
    }

    /// Its lines and inlined calls.
    pub fn lines(&self) -> Option<&Lines> {
        let read = || {
            let own = self.elf.as_ref().and_then(Lines::read);
            own.or_else(|| self.debug.as_ref().and_then(Lines::read))
        };
        self.lines.get_or_init(read).as_ref()
    }

    /// The file itself.
    pub fn elf(&self) -> Option<&Elf> {
        self.elf.as_ref()
    }
}

/// A path without `//` and `/./`, which images have several spellings with.
fn normal(path: &[u8]) -> Vec<u8> {
    let parts = Path::new(OsStr::from_bytes(path)).components();
    let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    path.into_os_string().into_encoded_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_path_are_one_file() {
        for path in ["/a/b.elf", "/a/./b.elf", "/a//b.elf", "//a/././b.elf"] {
            assert_eq!(normal(path.as_bytes()), b"/a/b.elf", "{path}");
        }
        assert_eq!(normal(b"[vdso]"), b"[vdso]");
    }
}
