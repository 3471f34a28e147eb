//! Code by address alone: the last code at each address.
//!
//! The output of valgrind has addresses but no timestamps. If several codes used an address, nothing determines which one is
//! meant. The last one is the best guess, and [`SymbolIndex::is_ambiguous_at`] reports whether there was another.
//!
//! [`mod@search`] finds the jitdumps and perf maps of a process, [`read`] reads them, [`owners`] determines the last code at each
//! address, and [`CodeLines`] maps an address to functions and lines.

mod owners;
mod read;
mod search;
mod source_args;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;

use code_image::Target;
use jitdump::CodeLoad;
use jitscribe_inject::{SourceOptions, SourceResolver, resolved_lines};

use crate::Result;
use crate::files::{Believed, Kind};

pub use jitscribe_inject::CodeLines;
use owners::Owners;
use read::{Code, Files, Origin, number_of};
pub use source_args::SourceArgs;

/// A file with code.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SourceSummary {
    /// Its path.
    #[serde(serialize_with = "crate::text::path_in_json")]
    pub path: PathBuf,
    /// Its format.
    pub kind: Kind,
    /// The number of codes in it.
    pub codes: usize,
}

/// The code of one process: the last code at each address.
#[derive(Debug)]
pub struct SymbolIndex {
    files: Files,
    owners: Owners,
    sources: Vec<SourceSummary>,
    target: Option<Target>,
    /// Where the sources are.
    resolver: SourceResolver<'static>,
    /// A cache of lookups, which are likely to be repeated.
    decoded: HashMap<u32, Rc<CodeLines>>,
    /// The number of lines and calls in the cache.
    held: usize,
}

/// The maximum number of lines and calls in the cache.
const HELD: usize = 1 << 20;

/// A range of addresses whose last owner is one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    id: u32,
    /// Address of the code's first byte.
    pub start: u64,
    /// The code's size in bytes.
    pub size: u64,
    /// The range around the requested address that was not overwritten later. Code that was partly
    /// overwritten has several such ranges, or none.
    pub visible: Range<u64>,
}

impl CodeRange {
    /// The code's number: equal for ranges of the same code.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl SymbolIndex {
    /// Reads the code of process `pid` from the files that `args` names, or else from those found where JITs
    /// put them. `beside` is the file with the addresses to look up; its folder is searched, too. Files that
    /// are damaged or missing are reported in `warnings`.
    ///
    /// # Errors
    /// If a file that `args` names cannot be read at all.
    pub fn of(
        args: &SourceArgs,
        pid: Option<u32>,
        beside: &Path,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let found = search::search(args, pid, beside, warnings);
        let mut files = Files::default();
        let (mut sources, mut codes, mut target) = (Vec::new(), Vec::new(), None);
        // Perf maps come first, so that jitdumps, which have more details, override them.
        for (number, file) in (0..).zip(&found) {
            let before = codes.len();
            let done = match file.kind {
                Kind::PerfMap => files.read_map(file, number, &mut codes, warnings),
                Kind::Jitdump => files
                    .read_dump(file, number, &mut codes, warnings)
                    .map(|of| target = target.or(Some(of))),
            };
            match done {
                Ok(()) => {}
                Err(error) if file.named => return Err(error),
                Err(error) => warnings.push(format!("{error}; skipped")),
            }
            sources.push(SourceSummary {
                path: file.path.clone(),
                kind: file.kind,
                codes: codes.len() - before,
            });
        }
        let (owners, resolver) = (Owners::of(codes), source_resolver(&args.source_dir));
        Ok(Self { files, owners, sources, target, resolver, decoded: HashMap::new(), held: 0 })
    }

    /// The last code at `address`.
    pub fn at(&self, address: u64) -> Option<CodeRange> {
        let (visible, id) = self.owners.at(address)?;
        Some(self.known(visible, id))
    }

    /// Among the codes with this name, the last one at `address`, which [is ambiguous](Self::is_ambiguous_at). Other code may
    /// have been there later.
    pub fn named_at(&mut self, name: &[u8], address: u64) -> Option<CodeRange> {
        let (visible, id) = self.owners.named_at(number_of(name), address)?;
        Some(self.known(visible, id))
    }

    /// All ranges, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = CodeRange> {
        self.owners.iter().map(|(visible, id)| self.known(visible, id))
    }

    fn known(&self, visible: Range<u64>, id: u32) -> CodeRange {
        let Code { start, size, .. } = *self.owners.code(id);
        CodeRange { id, start, size, visible }
    }

    /// Whether an earlier code at `address` differs in name or range: then it is unknown which of them
    /// was meant.
    pub fn is_ambiguous_at(&self, address: u64) -> bool {
        self.owners.is_ambiguous_at(address)
    }

    /// Whether no file has any code.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The files that were read.
    pub fn sources(&self) -> &[SourceSummary] {
        &self.sources
    }

    /// The file that contains a code.
    pub fn source_of(&self, known: &CodeRange) -> Option<&Path> {
        let file = self.owners.code(known.id).origin.file();
        self.sources.get(file as usize).map(|source| source.path.as_path())
    }

    /// The target machine of the code, if there is a dump.
    pub fn target(&self) -> Option<Target> {
        self.target
    }

    /// The name as written in the file: any bytes, possibly none.
    ///
    /// # Errors
    /// If the dump cannot be read.
    pub fn name(&mut self, known: &CodeRange) -> Result<Cow<'_, [u8]>> {
        match self.owners.code(known.id).origin.clone() {
            Origin::Map { file, name } => Ok(self.files.map_bytes(file, name).into()),
            Origin::Dump { .. } => {
                Ok(self.load(known)?.map(|load| load.name).unwrap_or_default().into())
            }
        }
    }

    /// The dump's record of a code: its bytes if available, lines, inlined calls, unwind tables. The
    /// record refers to the address where the code was loaded, [`CodeLoad::address`], which differs from
    /// [`CodeRange::start`] if the code was moved. `None` for code of a perf map, and if the dump no longer
    /// contains the record.
    ///
    /// # Errors
    /// If the dump cannot be read.
    pub fn load(&mut self, known: &CodeRange) -> Result<Option<CodeLoad<'_>>> {
        let Origin::Dump { file, place } = &self.owners.code(known.id).origin else {
            return Ok(None);
        };
        self.files.load(*file, place, known.size)
    }

    /// The functions and lines of the addresses of a code.
    ///
    /// # Errors
    /// If the dump cannot be read.
    pub fn places(&mut self, known: &CodeRange) -> Result<Rc<CodeLines>> {
        if let Some(places) = self.decoded.get(&known.id) {
            return Ok(Rc::clone(places));
        }
        let name = self.name(known)?.into_owned();
        let load = match &self.owners.code(known.id).origin {
            Origin::Dump { file, place } => self.files.load(*file, place, known.size)?,
            Origin::Map { .. } => None,
        };
        let sources = self.resolver.cached();
        let places = Rc::new(resolved_lines(&name, known.start, load.as_ref(), &sources));
        if self.held > HELD {
            self.decoded.clear();
            self.held = 0;
        }
        self.held += places.len();
        self.decoded.insert(known.id, Rc::clone(&places));
        Ok(places)
    }
}

/// What finds the sources in these folders, and the definitions of functions whose code has no lines. Lines are those of the
/// scripts as they ran.
pub fn source_resolver(folders: &[PathBuf]) -> SourceResolver<'static> {
    static FILES: OnceLock<Believed> = OnceLock::new();
    let files = FILES.get_or_init(|| Believed::about(None, &BTreeMap::new(), true, &[]));
    let folders = folders.to_vec();
    let options = SourceOptions { use_maps: false, folders, ..SourceOptions::default() };
    SourceResolver::new(&options, files)
}

/// The warning for a process without known code.
pub fn no_code_found(pid: Option<u32>) -> String {
    let whose = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    format!(
        "no jitdump or perf map with code of process {whose} found (looked for \
         jit-{whose}.dump and perf-{whose}.map). `jitscribe record --tool=TOOL -- CMD` asks known runtimes \
         to write one; for a file elsewhere, use --jitdump FILE or --perf-map FILE"
    )
}

#[cfg(test)]
mod tests;
