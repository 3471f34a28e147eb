//! Code by address alone: who was there last.
//!
//! What valgrind writes down has addresses and no times, so nothing says which of several codes an
//! address meant that was used again. The one that was there last is the best guess, and whether
//! there was another is known: [`KnownCode::was_other_at`].
//!
//! [`mod@search`] finds the jitdumps and perf maps of a process, [`read`] reads them, [`owners`] says
//! who was where last, and [`places`] which lines, of which functions, an address is of.

mod owners;
mod places;
mod read;
mod search;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use code_image::Target;
use jitdump::CodeLoad;

use crate::files::{Kind, Named};
use crate::{Error, Result};

use owners::Owners;
pub use places::Places;
use read::{Code, Files, Origin};

/// Where to look for what a JIT wrote.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SourceArgs {
    /// Read this perf map, whatever is found [default: perf-PID.map beside the input, in
    /// JITSCRIBE_DIR and in /tmp]
    #[arg(long, value_name = "[PID=]FILE")]
    pub perf_map: Vec<Named>,
    /// Read this jitdump, whatever is found [default: jit-PID.dump beside the input, in
    /// JITSCRIBE_DIR, JITDUMPDIR, ~/.debug/jit, $XDG_RUNTIME_DIR/jitscribe, ~/.cache/jitscribe, the
    /// working directory and /tmp]
    #[arg(long, value_name = "[PID=]FILE")]
    pub jitdump: Vec<Named>,
    /// Look for perf maps and jitdumps in this folder, and those within it, first
    #[arg(long, value_name = "DIR")]
    pub aux_dir: Vec<PathBuf>,
    /// Folders that are taken away afterwards: what is written does not name files in them.
    #[arg(skip)]
    pub leaving: Vec<PathBuf>,
    /// The process told valgrind of its code by itself, so that nothing may be left to name.
    #[arg(skip)]
    pub named_at_once: bool,
}

/// A file that told of code.
#[derive(Clone, Debug, serde::Serialize)]
pub struct KnownSource {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// How many pieces of code it told of.
    pub codes: usize,
}

/// The code of one process: what was at each address last.
#[derive(Debug)]
pub struct KnownCode {
    files: Files,
    owners: Owners,
    sources: Vec<KnownSource>,
    target: Option<Target>,
    /// What was asked for, as it is likely to be asked for again.
    decoded: HashMap<u32, Rc<Places>>,
    /// How many lines and calls these hold.
    held: usize,
}

/// The lines of more codes than have this many are not kept decoded.
const HELD: usize = 1 << 20;

/// A stretch of addresses whose last owner is one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    id: u32,
    /// Address of the code's first byte.
    pub start: u64,
    /// The code's size in bytes.
    pub size: u64,
    /// The addresses around the one asked for at which nothing came later. Code that others were
    /// written over has several such stretches, or none.
    pub visible: Range<u64>,
}

impl Known {
    /// The code's number: equal for what is of the same code.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl KnownCode {
    /// Reads what the files say that `args` names, or else those that lie where JITs put them: for
    /// the process `pid`, and `beside` the file of which an address is to be known. Files that are
    /// damaged or missing are told in `warnings`.
    ///
    /// # Errors
    /// When a file that `args` names cannot be read at all.
    pub fn of(
        args: &SourceArgs,
        pid: Option<u32>,
        beside: &Path,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let found = search::search(args, pid, beside);
        let mut files = Files::default();
        let (mut sources, mut codes, mut target) = (Vec::new(), Vec::new(), None);
        // What a jitdump says goes over what a perf map says, which is less.
        for (number, file) in (0..).zip(&found) {
            let before = codes.len();
            let done = match file.kind {
                Kind::PerfMap => files.read_map(&file.path, number, &mut codes, warnings),
                Kind::Jitdump => files
                    .read_dump(&file.path, number, &mut codes, warnings)
                    .map(|of| target = target.or(Some(of))),
            };
            match done {
                Ok(()) => {}
                Err(error) if file.named => return Err(error),
                Err(error) => warnings.push(format!("{error}; it is left out")),
            }
            sources.push(KnownSource {
                path: file.path.clone(),
                kind: file.kind,
                codes: codes.len() - before,
            });
        }
        let owners = Owners::of(codes);
        Ok(Self { files, owners, sources, target, decoded: HashMap::new(), held: 0 })
    }

    /// Who was at `address` last.
    pub fn at(&self, address: u64) -> Option<Known> {
        let (visible, id) = self.owners.at(address)?;
        Some(self.known(visible, id))
    }

    /// All stretches, by address.
    pub fn iter(&self) -> impl Iterator<Item = Known> {
        self.owners.iter().map(|(visible, id)| self.known(visible, id))
    }

    fn known(&self, visible: Range<u64>, id: u32) -> Known {
        let Code { start, size, .. } = *self.owners.code(id);
        Known { id, start, size, visible }
    }

    /// Whether an earlier code was at `address` that was not the same under the same name: then
    /// nothing says which of them was meant.
    pub fn was_other_at(&self, address: u64) -> bool {
        self.owners.was_other_at(address)
    }

    /// Whether no file told of any code.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The files that were read.
    pub fn sources(&self) -> &[KnownSource] {
        &self.sources
    }

    /// The file that tells of a code.
    pub fn source_of(&self, known: &Known) -> Option<&Path> {
        let file = self.owners.code(known.id).origin.file();
        self.sources.get(file as usize).map(|source| source.path.as_path())
    }

    /// For which machine the code is, if a dump says it.
    pub fn target(&self) -> Option<Target> {
        self.target
    }

    /// The name, as told: any bytes, maybe none.
    ///
    /// # Errors
    /// When the dump cannot be read.
    pub fn name(&mut self, known: &Known) -> Result<Cow<'_, [u8]>> {
        match self.owners.code(known.id).origin.clone() {
            Origin::Map { file, name } => Ok(self.files.map_bytes(file, name).into()),
            Origin::Dump { .. } => {
                Ok(self.load(known)?.map(|load| load.name).unwrap_or_default().into())
            }
        }
    }

    /// All that a dump says of a code: its bytes if told, lines, inlined calls, unwind tables. It is
    /// told for the address where the code was made, [`CodeLoad::address`], which is not
    /// [`Known::start`] if the code was moved. `None` for code of a perf map, and where the dump
    /// does not say it any more.
    ///
    /// # Errors
    /// When the dump cannot be read.
    pub fn load(&mut self, known: &Known) -> Result<Option<CodeLoad<'_>>> {
        let Origin::Dump { file, place } = &self.owners.code(known.id).origin else {
            return Ok(None);
        };
        self.files.load(*file, place, known.size)
    }

    /// Which lines of which functions the addresses of a code are of.
    ///
    /// # Errors
    /// When the dump cannot be read.
    pub fn places(&mut self, known: &Known) -> Result<Rc<Places>> {
        if let Some(places) = self.decoded.get(&known.id) {
            return Ok(Rc::clone(places));
        }
        let name = self.name(known)?.into_owned();
        let load = self.load(known)?;
        let places = Rc::new(Places::of(name, known.start, load.as_ref()));
        if self.held > HELD {
            self.decoded.clear();
            self.held = 0;
        }
        self.held += places.len();
        self.decoded.insert(known.id, Rc::clone(&places));
        Ok(places)
    }
}

/// What to type where no code is known.
pub fn nothing_known(pid: Option<u32>) -> String {
    let whose = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    format!(
        "no jitdump and no perf map tells of any code of process {whose} (looked for \
         jit-{whose}.dump and perf-{whose}.map). Does the runtime write one (node --perf-prof, php -d \
         opcache.jit_debug=32, MVM_JIT_PERF_MAP=1)? `jitscribe record --tool=TOOL -- CMD` sets what \
         is needed; --jitdump FILE or --perf-map FILE say where one lies"
    )
}

/// For `map_err`: a dump that cannot be opened.
fn unreadable(path: &Path) -> impl FnOnce(jitdump::OpenError) -> Error {
    let path = path.to_owned();
    move |error| match error {
        jitdump::OpenError::Read(source) => Error::File { path, source },
        jitdump::OpenError::Format(error) => Error::Format { path, cause: error.to_string() },
    }
}

#[cfg(test)]
mod tests;
