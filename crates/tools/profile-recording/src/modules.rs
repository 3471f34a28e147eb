//! The files that were mapped: opened, checked and read when they are first needed.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jitscribe_inject::Recording;
use jitscribe_inject::files::{
    ReplacedFiles, SourceFile, SourceFiles, base_name, is_build_id, pid_of_jitted,
};
use jitscribe_inject::without_spelling;
use native_files::{DebugFiles, Elf, FoundSymbol, Lines, NativeFile};
use profile::{ModuleKind, ProcessId};
use rustc_hash::FxHashMap;

use crate::vdso;

/// The files with code.
#[derive(Debug)]
pub struct Modules<'f> {
    files: &'f dyn SourceFiles,
    /// The recorded build-ids, by path.
    build_ids: FxHashMap<Vec<u8>, Vec<u8>>,
    replaced: ReplacedFiles,
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
    file: Option<NativeFile<SourceFile>>,
    /// To whom the file belongs.
    owner: Option<u32>,
    /// Why it cannot be looked into.
    problem: Option<String>,
}

/// A place in a file, as a process has it mapped.
#[derive(Clone, Copy, Debug)]
pub struct InFile {
    /// The number of the file.
    pub module: usize,
    /// The offset in the file.
    pub offset: u64,
    /// The address in the process.
    pub address: u64,
    pub process: ProcessId,
}

impl<'f> Modules<'f> {
    /// None yet.
    pub fn new(recording: &Recording, files: &'f dyn SourceFiles) -> Self {
        let input = recording.reader();
        let ids = input.features().build_ids(input.endian());
        let build_ids =
            ids.into_iter().map(|file| (without_spelling(&file.filename), file.id)).collect();
        Self {
            files,
            build_ids,
            replaced: recording.replaced_files().clone(),
            is_this_machine: recording.is_of_this_machine(),
            list: Vec::new(),
            by_path: FxHashMap::default(),
            images: FxHashMap::default(),
        }
    }

    /// The number of the file at `path`, which was mapped with this build-id, if that is known.
    pub fn number(&mut self, path: &[u8], build_id: Option<&[u8]>) -> usize {
        let path = without_spelling(path);
        if let Some(&number) = self.by_path.get(&path) {
            return number;
        }
        let recorded = build_id.or_else(|| self.build_ids.get(&path).map(Vec::as_slice));
        let module = Module::open(path.clone(), recorded, self);
        let number = self.list.len();
        if module.kind == ModuleKind::Image {
            self.images.entry(module.name().to_vec()).or_insert(number);
        }
        self.list.push(module);
        self.by_path.insert(path, number);
        number
    }

    /// The path of a file as modules have it, and its build-id: as recorded or, in a recording of this machine, as it is now. Empty if it is not known.
    pub fn identity(&self, path: &[u8], build_id: Option<&[u8]>) -> (Vec<u8>, Vec<u8>) {
        let path = without_spelling(path);
        let known = self.by_path.get(&path).and_then(|&number| self.list.get(number));
        let known = known.map(|module| module.build_id().to_vec()).filter(|id| !id.is_empty());
        let recorded = || build_id.or_else(|| self.build_ids.get(&path).map(Vec::as_slice));
        let of_file = || {
            let file = self.files.open(Path::new(OsStr::from_bytes(&path)), None).ok()?;
            Some(Elf::read(file).ok()?.build_id()?.to_vec())
        };
        let id = known.or_else(|| recorded().map(<[u8]>::to_vec));
        let id = id.or_else(|| self.is_this_machine.then(of_file).flatten());
        (path, id.unwrap_or_default())
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

    /// Whether the recording is of this machine.
    pub fn are_here(&self) -> bool {
        self.is_this_machine
    }

    /// How files are opened.
    pub fn files(&self) -> &'f dyn SourceFiles {
        self.files
    }
}

impl Module {
    fn open(path: Vec<u8>, recorded: Option<&[u8]>, modules: &Modules<'_>) -> Self {
        let Modules { files, replaced, is_this_machine, .. } = modules;
        let kind = match pid_of_jitted(&path) {
            Some(_) => ModuleKind::Image,
            None => ModuleKind::File,
        };
        let mut module = Self { path, kind, file: None, owner: None, problem: None };
        let file = match &*module.path {
            vdso::NAME if *is_this_machine => vdso::read(),
            // The kernel's own names of memory.
            path if !path.starts_with(b"/") => return module,
            path => files.open(Path::new(OsStr::from_bytes(path)), None),
        };
        module.owner = file.as_ref().ok().and_then(SourceFile::owner);
        match file.and_then(Elf::read) {
            Ok(elf) if replaced.is_replaced(&module.path, elf.file()) => {
                let problem = "another file had replaced the recorded one; jitscribe record keeps files that are replaced";
                module.problem = Some(problem.into());
            }
            Ok(elf) if recorded.is_some_and(|id| !is_build_id(id, elf.build_id())) => {
                let replaced = "has another build-id than the recorded file: it was replaced, or is another machine's";
                module.problem = Some(replaced.into());
            }
            Ok(elf) => {
                let open = |path: &Path| files.open(path, None);
                let debug_files = DebugFiles { open: &open, ask_servers: true };
                module.file = Some(match kind {
                    ModuleKind::File => NativeFile::new(elf, &module.path, &debug_files),
                    _ => NativeFile::alone(elf),
                });
            }
            Err(error) => module.problem = Some(Self::unreadable(&module.path, &error)),
        }
        module
    }

    /// Why a file cannot be read.
    fn unreadable(path: &[u8], error: &io::Error) -> String {
        let kept = "jitscribe record keeps such files while their processes run";
        if path.ends_with(b" (deleted)") {
            format!("was deleted or replaced while it ran; {kept}")
        } else if error.kind() == io::ErrorKind::NotFound {
            format!("{error}; if it was deleted or replaced: {kept}")
        } else {
            error.to_string()
        }
    }

    /// Why it cannot be looked into, if it cannot.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// To whom the file belongs, if that is known.
    pub fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// Whether functions that the file does not export have no names.
    pub fn is_stripped(&self) -> bool {
        self.file.as_ref().is_some_and(NativeFile::is_stripped)
    }

    /// Its name without its folder.
    pub fn name(&self) -> &[u8] {
        base_name(&self.path)
    }

    /// Its build-id; empty if it has none, or is not known.
    pub fn build_id(&self) -> &[u8] {
        self.file.as_ref().and_then(|file| file.elf().build_id()).unwrap_or_default()
    }

    /// The address of an offset in the file; the offset itself if the file is not known.
    pub fn address(&self, offset: u64) -> u64 {
        self.file.as_ref().and_then(|file| file.elf().mapped_address(offset)).unwrap_or(offset)
    }

    /// The symbol at an address.
    pub fn symbol(&self, address: u64) -> Option<FoundSymbol> {
        self.file.as_ref()?.symbol(address)
    }

    /// The name of a branch's target outside of the functions in the file.
    pub fn label(&self, address: u64) -> Option<Vec<u8>> {
        self.file.as_ref()?.label(address)
    }

    /// Passes the names of all functions to `each`.
    pub fn each_name(&self, each: impl FnMut(&[u8])) {
        if let Some(file) = &self.file {
            file.each_name(each);
        }
    }

    /// Its lines and inlined calls.
    pub fn lines(&self) -> Option<&Lines> {
        self.file.as_ref()?.lines()
    }

    /// The file itself.
    pub fn file(&self) -> Option<&NativeFile<SourceFile>> {
        self.file.as_ref()
    }
}
