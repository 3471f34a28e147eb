//! Machine code, lines and sources of what was recorded.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use jitscribe_inject::files::SourceFile;
use jitscribe_inject::{SOURCES, SourceFolders};
use native_files::SourceFrame;
use profile::{
    Builder, CodeId, CodeSource, ContentHash, ListedFrame, ListedLine, Listing, ModuleKind, Source,
    StringId,
};
use rustc_hash::FxHashMap;
use tempfile::TempDir;

use crate::bpf::BpfPrograms;
use crate::modules::Modules;
use crate::source_users::SourceUsers;
use jitscribe_inject::demangled_symbol;
use jitscribe_inject::jitted_function::{JittedFunctions, inlined_name};

/// Larger source files are not read.
const LARGEST_SOURCE: u64 = 1 << 26;
/// Of no more bytes of sources, hashes are computed.
const MOST_SOURCES: u64 = 1 << 30;

/// The machine code of a recording, with its lines, inlined calls and sources. Files are read when they are asked for.
pub struct RecordedCode<'f> {
    modules: Modules<'f>,
    bpf: BpfPrograms,
    /// By number.
    codes: Vec<CodePlace>,
    functions: JittedFunctions,
    /// The folders of the images.
    folders: BTreeSet<PathBuf>,
    /// When the recording ended, in nanoseconds since 1970, if that is known.
    end: Option<i64>,
    users: SourceUsers,
    /// The folders with sources that the user named.
    source_folders: Vec<PathBuf>,
    /// What is in them.
    in_source_folders: SourceFolders,
    /// Sources that are there, but are not shown.
    withheld: BTreeSet<Vec<u8>>,
    /// Keeps images that were made for this profile.
    _temporary: Option<TempDir>,
}

/// Where a code is.
#[derive(Clone, Debug)]
pub struct CodePlace {
    /// What has it.
    pub place: Place,
    /// Its addresses in the file's own terms.
    pub range: Range<u64>,
    /// The name of its function.
    pub function: Vec<u8>,
}

/// What has a code.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The file with this number.
    Module(usize),
    /// The function with this number of a BPF program.
    Program(usize),
}

impl fmt::Debug for RecordedCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedCode").field("codes", &self.codes.len()).finish_non_exhaustive()
    }
}

impl<'f> RecordedCode<'f> {
    /// Of these files and codes.
    pub(crate) fn new(
        modules: Modules<'f>,
        bpf: BpfPrograms,
        (codes, functions): (Vec<CodePlace>, JittedFunctions),
        end: Option<i64>,
        temporary: Option<TempDir>,
    ) -> Self {
        let images = modules.iter().filter(|(_, module)| module.kind == ModuleKind::Image);
        let folder = |path: &[u8]| Path::new(OsStr::from_bytes(path)).parent().map(Path::to_owned);
        let folders = images.filter_map(|(_, module)| folder(&module.path)).collect();
        Self {
            modules,
            bpf,
            codes,
            functions,
            folders,
            end,
            users: SourceUsers::default(),
            source_folders: Vec::new(),
            in_source_folders: SourceFolders::default(),
            withheld: BTreeSet::new(),
            _temporary: temporary,
        }
    }

    /// Shows the sources that these users may read, and those in these folders that their owners may read.
    pub(crate) fn showing(mut self, users: SourceUsers, folders: Vec<PathBuf>) -> Self {
        self.in_source_folders = SourceFolders::new(&folders);
        (self.users, self.source_folders) = (users, folders);
        self
    }

    /// The sources that were asked for and are there, but are not shown: no user whose code names them may read them, as far as is
    /// known.
    pub fn withheld(&self) -> impl Iterator<Item = &[u8]> {
        self.withheld.iter().map(Vec::as_slice)
    }

    /// Opens a source file for those who may see it.
    fn open_source(&mut self, file: &[u8]) -> Option<SourceFile> {
        let path = Path::new(OsStr::from_bytes(file));
        let files = self.modules.files();
        // A folder that the user named is that of someone, who may have put links there.
        let is_plain = path.components().all(|part| part != Component::ParentDir);
        let within = self.source_folders.iter();
        let within = within.filter(|folder| is_plain && path.starts_with(folder));
        let owners = within.filter_map(|folder| Some(fs::metadata(folder).ok()?.uid()));
        let users = self.users.of(file).chain(owners.map(Some));
        let mut is_denied = false;
        for user in users {
            match files.open_source(path, user) {
                Ok(opened) => return Some(opened),
                Err(error) => is_denied |= error.kind() == io::ErrorKind::PermissionDenied,
            }
        }
        if is_denied {
            self.withheld.insert(file.to_vec());
        }
        None
    }

    /// Adds the hashes of the sources that the recording has.
    pub(crate) fn add_sources(&self, builder: &mut Builder) {
        let files: BTreeSet<StringId> =
            builder.functions().iter().map(|function| function.file).collect();
        // Several spellings of a path may name one file.
        let mut known: FxHashMap<PathBuf, Option<ContentHash>> = FxHashMap::default();
        let mut left = MOST_SOURCES;
        for file in files {
            let text = builder.text(file).to_vec();
            let content = self.folders.iter().find_map(|folder| {
                let path = below(&folder.join(SOURCES), &text)?;
                let hash = || {
                    let (content, _) = self.read(&path).filter(|_| left > 0)?;
                    left = left.saturating_sub(content.len() as u64);
                    Some(ContentHash::of(&content))
                };
                *known.entry(path.clone()).or_insert_with(hash)
            });
            if let Some(content) = content {
                builder.source(file, content);
            }
        }
    }

    fn read(&self, path: &Path) -> Option<(Vec<u8>, Option<SystemTime>)> {
        content(&self.modules.files().open(path, None).ok()?)
    }

    fn listed(
        &self,
        place: &CodePlace,
        kind: ModuleKind,
        frames: Vec<SourceFrame>,
    ) -> Vec<ListedFrame> {
        let last = frames.len().saturating_sub(1);
        let listed = frames.into_iter().enumerate().map(|(depth, frame)| ListedFrame {
            function: match kind {
                _ if depth == last => place.function.clone(),
                ModuleKind::Image => inlined_name(&frame.function, self.functions.originals()),
                _ => demangled_symbol(&frame.function),
            },
            file: frame.file,
            line: frame.line,
            column: frame.column,
        });
        listed.collect()
    }
}

/// The text of a source file, and when it was changed.
fn content(opened: &SourceFile) -> Option<(Vec<u8>, Option<SystemTime>)> {
    let metadata = opened.metadata().ok()?;
    if metadata.len() > LARGEST_SOURCE {
        return None;
    }
    let mut text = Vec::new();
    let mut content: &fs::File = opened;
    content.by_ref().take(LARGEST_SOURCE).read_to_end(&mut text).ok()?;
    Some((text, metadata.modified().ok()))
}

impl CodeSource for RecordedCode<'_> {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        let place = self.codes.get(code.index())?;
        let number = match place.place {
            Place::Module(number) => number,
            Place::Program(number) => return self.bpf.listing(number, &place.function),
        };
        let module = self.modules.get(number)?;
        let elf = module.file()?.elf();
        // Where the bytes of a code are not known, an image has zeros. No function consists of them.
        let bytes = elf.bytes(&place.range).filter(|bytes| bytes.iter().any(|&byte| byte != 0))?;
        let machine = elf.machine();
        let lines = module.lines().map(|lines| lines.in_range(&place.range)).unwrap_or_default();
        let lines = lines.into_iter().map(|(address, frames)| ListedLine {
            offset: address.saturating_sub(place.range.start),
            frames: self.listed(place, module.kind, frames),
        });
        let lines: Vec<_> = lines.collect();
        let address = place.range.start;
        for frame in lines.iter().flat_map(|line| &line.frames) {
            self.users.add(&frame.file, Some(number));
        }
        Some(Listing { address, machine, bytes, lines })
    }

    fn name_at(&mut self, code: CodeId, address: u64) -> Option<(Vec<u8>, u64)> {
        let place = self.codes.get(code.index())?;
        let Place::Module(number) = place.place else { return None };
        let module = self.modules.get(number)?;
        if let Some(symbol) = module.symbol(address) {
            let name = match module.kind {
                ModuleKind::Image => symbol.name,
                _ => demangled_symbol(&symbol.name),
            };
            return Some((name, address.saturating_sub(symbol.range.start)));
        }
        module.label(address).map(|name| (name, 0))
    }

    fn source(&mut self, file: &[u8]) -> Option<Source> {
        // As the runtime compiled them.
        let mut kept = self.folders.iter().filter_map(|folder| {
            let below = below(&folder.join(SOURCES), file)?;
            self.read(&below)
        });
        if let Some((text, _)) = kept.next() {
            return Some(Source { text, is_newer: false });
        }
        let opened = self.open_source(file).or_else(|| {
            // Runtimes that give no path, or one of another machine.
            let found = self.in_source_folders.find(file)?.as_os_str().as_bytes().to_vec();
            let opened = self.open_source(&found)?;
            self.withheld.remove(file);
            Some(opened)
        });
        let Some(opened) = opened else {
            let text = self.bpf.source(file)?;
            return Some(Source { text, is_newer: false });
        };
        let (text, modified) = content(&opened)?;
        let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.and_then(|time| i64::try_from(time.as_nanos()).ok());
        let is_newer = modified.zip(self.end).is_some_and(|(modified, end)| modified > end);
        Some(Source { text, is_newer })
    }
}

/// The path of a source in the folder that keeps them; `None` if it has no place there.
fn below(folder: &Path, file: &[u8]) -> Option<PathBuf> {
    let parts = file.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut path = folder.to_owned();
    let mut count = 0_usize;
    for part in parts {
        if part == b".." || part.contains(&0) {
            return None;
        }
        path.push(OsStr::from_bytes(part));
        count = count.saturating_add(1);
    }
    (count > 0).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_in_their_folder_only() {
        let folder = Path::new("/out");
        assert_eq!(below(folder, b"/home/a b/x.js"), Some("/out/home/a b/x.js".into()));
        for file in [&b""[..], b"/", b"/a/../../etc/passwd", b"a\0b"] {
            assert_eq!(below(folder, file), None);
        }
    }
}
