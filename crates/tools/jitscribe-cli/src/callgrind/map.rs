//! Describes, for the profile, the code that callgrind did not know.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use callgrind::{CodeMap, Function, Owner, Place};

use super::names::FunctionNames;
use crate::files::{Kind, is_file};
use crate::symbols::{CodeLines, CodeRange, SymbolIndex};
use crate::{Error, Result};

/// The number of source file names that are cached.
const FILES: usize = 1 << 16;

/// The known code, in the form that the profile needs.
pub struct Map {
    known: SymbolIndex,
    /// The object file with the bytes of code.
    image: Rc<[u8]>,
    /// The object name for code without bytes: the perf map.
    no_image: Rc<[u8]>,
    /// Indexed by code number.
    entries: Vec<Option<FunctionEntry>>,
    files: HashMap<Box<[u8]>, Rc<[u8]>>,
    /// Files without a folder, as Valgrind names them.
    in_valgrind: HashMap<Rc<[u8]>, Rc<[u8]>>,
    /// Where relative files may be.
    folders: Vec<PathBuf>,
    /// How functions are named; computed when the first one is.
    names: Option<FunctionNames>,
    /// The last lookup: the next one is mostly about the same function and file.
    last: Option<(u32, Rc<CodeLines>)>,
    last_file: Rc<[u8]>,
    has_bytes: bool,
    /// The announced functions with instructions of which the code is not known: several codes were there, and none has the
    /// function's name.
    undecided: HashSet<Box<[u8]>>,
    error: Option<Error>,
}

/// What was found about the code of a profile.
pub struct Found {
    /// The known code.
    pub known: SymbolIndex,
    /// The number of named functions at addresses that held other code before.
    pub doubtful: usize,
    /// The number of announced functions of which the code is not known.
    pub undecided: usize,
    /// Whether there are bytes for an object file.
    pub has_bytes: bool,
}

#[derive(Clone)]
struct FunctionEntry {
    known: CodeRange,
    function: Option<Function>,
    /// Whether other code was once at one of the addresses that were looked up.
    is_doubtful: bool,
}

impl Map {
    /// A map of `known`, whose bytes will be in the object file `image`. Relative files are looked for in `folders`.
    pub fn new(known: SymbolIndex, image: &Path, folders: Vec<PathBuf>) -> Self {
        let map = known.sources().iter().find(|source| source.kind == Kind::PerfMap);
        let no_image = map.map_or(image, |map| &map.path).as_os_str().as_bytes().into();
        Self {
            known,
            image: image.as_os_str().as_bytes().into(),
            no_image,
            entries: Vec::new(),
            files: HashMap::new(),
            in_valgrind: HashMap::new(),
            folders,
            names: None,
            last: None,
            last_file: b"".as_slice().into(),
            has_bytes: false,
            undecided: HashSet::new(),
            error: None,
        }
    }

    /// Returns what was found.
    ///
    /// # Errors
    /// The first error of a lookup.
    pub fn finish(self) -> Result<Found> {
        match self.error {
            Some(error) => Err(error),
            None => {
                let doubtful =
                    self.entries.iter().flatten().filter(|entry| entry.is_doubtful).count();
                let undecided = self.undecided.len();
                Ok(Found { known: self.known, doubtful, undecided, has_bytes: self.has_bytes })
            }
        }
    }

    /// The value of `result`. An error is stored, and [`Self::finish`] returns it.
    fn kept<T>(error: &mut Option<Error>, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(failed) => {
                error.get_or_insert(failed);
                None
            }
        }
    }

    /// The code of an instruction of an announced function.
    fn announced(&mut self, function: &[u8], address: u64, has_line: bool) -> Option<CodeRange> {
        if !self.known.is_ambiguous_at(address) {
            // If callgrind has a line, it is right.
            return if has_line { None } else { self.known.at(address) };
        }
        let named = names(function).find_map(|name| self.known.named_at(name, address));
        if named.is_none() && !self.undecided.contains(function) {
            self.undecided.insert(function.into());
        }
        named
    }

    /// The position of an instruction of a code. Codes and announced code have different numbers.
    fn place_in(&mut self, known: &CodeRange, address: u64) -> Option<Place> {
        let places = match &self.last {
            Some((last, places)) if *last == known.id() => Rc::clone(places),
            _ => {
                let places = Self::kept(&mut self.error, self.known.places(known))?;
                self.last = Some((known.id(), Rc::clone(&places)));
                places
            }
        };
        let place = places.at(address).next().filter(|place| place.line > 0)?;
        if *self.last_file != *place.file {
            self.last_file = self.file(place.file);
        }
        Some(Place { file: Rc::clone(&self.last_file), line: place.line })
    }

    fn entry(&self, function: u32) -> Option<&FunctionEntry> {
        self.entries.get(function as usize)?.as_ref()
    }

    fn file(&mut self, name: &[u8]) -> Rc<[u8]> {
        if let Some(file) = self.files.get(name) {
            return Rc::clone(file);
        }
        if self.files.len() > FILES {
            self.files.clear();
        }
        // KCachegrind and callgrind_annotate look for relative files where they are run.
        let is_relative = !name.is_empty() && !name.starts_with(b"/");
        let mut all = self.folders.iter().map(|folder| folder.join(OsStr::from_bytes(name)));
        let found = all.find(|path| is_relative && is_file(path));
        let file = found.as_deref().map_or(name, |path| path.as_os_str().as_bytes());
        let file: Rc<[u8]> = file.into();
        self.files.insert(name.into(), Rc::clone(&file));
        file
    }
}

impl Map {
    /// A file as Valgrind names it where it has the lines itself, so that a function is of one file: `./p.raku` for `p.raku`.
    fn as_in_valgrind(&mut self, file: Rc<[u8]>) -> Rc<[u8]> {
        if file.is_empty() || file.contains(&b'/') {
            return file;
        }
        if let Some(name) = self.in_valgrind.get(&file) {
            return Rc::clone(name);
        }
        if self.in_valgrind.len() > FILES {
            self.in_valgrind.clear();
        }
        let name: Rc<[u8]> = [b"./", &*file].concat().into();
        self.in_valgrind.insert(file, Rc::clone(&name));
        name
    }
}

impl CodeMap for Map {
    fn at(&mut self, address: u64) -> Option<Owner> {
        let known = self.known.at(address)?;
        let (function, start, visible) = (known.id(), known.start, known.visible.clone());
        let index = function as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, None);
        }
        let entry = self.entries[index].get_or_insert(FunctionEntry {
            known,
            function: None,
            is_doubtful: false,
        });
        entry.is_doubtful = entry.is_doubtful || self.known.is_ambiguous_at(address);
        Some(Owner { function, start, visible })
    }

    fn function(&mut self, function: u32) -> Function {
        let Some(FunctionEntry { known, function: named, .. }) = self.entry(function).cloned()
        else {
            let unknown: Rc<[u8]> = b"???".as_slice().into();
            return Function { name: unknown.clone(), object: unknown.clone(), file: unknown };
        };
        if let Some(named) = named {
            return named;
        }
        if self.names.is_none() {
            self.names = Self::kept(&mut self.error, FunctionNames::of(&mut self.known));
        }
        let names = self.names.get_or_insert_default();
        let name = self.known.name(&known).map(|name| names.of_code(&name));
        let (name, file_in_name) = Self::kept(&mut self.error, name).unwrap_or_default();
        let load = Self::kept(&mut self.error, self.known.load(&known)).flatten();
        let has_bytes = load.is_some_and(|load| !load.bytes.is_empty());
        self.has_bytes |= has_bytes;
        // The file of the function's own first line, not of a call inlined there.
        let places = Self::kept(&mut self.error, self.known.places(&known));
        let file = places.and_then(|places| {
            let last = places.at(known.start).last();
            let first =
                last.filter(|place| !place.file.is_empty()).map(|place| place.file.to_vec());
            first.or_else(|| places.first_file().map(<[u8]>::to_vec))
        });
        let file = file.or(file_in_name);
        let name = if name.is_empty() { format!("{:#x}", known.start).into_bytes() } else { name };
        let named = Function {
            name: name.into(),
            object: Rc::clone(if has_bytes { &self.image } else { &self.no_image }),
            file: self.file(file.as_deref().unwrap_or(b"???")),
        };
        if let Some(Some(entry)) = self.entries.get_mut(function as usize) {
            entry.function = Some(named.clone());
        }
        named
    }

    fn place(&mut self, function: u32, address: u64) -> Option<Place> {
        let known = self.entry(function)?.known.clone();
        self.place_in(&known, address)
    }

    fn is_announced(&mut self, object: &[u8]) -> bool {
        is_announced(object)
    }

    fn announced_place(&mut self, function: &[u8], address: u64, line: u64) -> Option<Place> {
        let known = self.announced(function, address, line > 0)?;
        let place = self.place_in(&known, address)?;
        Some(Place { file: self.as_in_valgrind(place.file), ..place })
    }
}

/// Whether an object's path is one that the library gives to the object files for Valgrind: `jit-PID-ADDRESS.so`.
fn is_announced(object: &[u8]) -> bool {
    let name = object.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let numbers = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".so"));
    let mut parts = numbers.unwrap_or_default().split(|byte| *byte == b'-');
    let are_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_hexdigit);
    parts.next().is_some_and(are_digits) && parts.next().is_some_and(are_digits)
}

/// The names that a function in a profile may have been announced by: without recursion level and callers, which follow `'`. A
/// name may itself contain that.
fn names(function: &[u8]) -> impl Iterator<Item = &[u8]> {
    const MOST: usize = 8;
    let quotes = function.iter().enumerate().filter(|(_, byte)| **byte == b'\'');
    let mut ends: Vec<usize> = quotes.map(|(at, _)| at).take(MOST).collect();
    ends.push(function.len());
    ends.into_iter().rev().filter_map(|end| function.get(..end))
}
