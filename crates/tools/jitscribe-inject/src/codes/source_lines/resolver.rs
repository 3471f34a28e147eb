//! Finds the user's sources of the files that runtimes name.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use code_image::jitdump::Position;
use code_index::{FunctionName, NameKind};
use jitdump::CodeLoad;
use source_map::{MapUrl, SourceMap};

use super::append_only::AppendOnly;
use super::deno;
use super::folders::Folders;
use super::missing::MissingFolders;
use super::name::{folder_of, joined, source_name};
use super::python::Definitions;
use super::script::{MappedScript, may_be_script};
use crate::Warning;
use crate::codes::original_places::{OriginalPlaces, SourcePlace};
use crate::files::{SourceFiles, content};
use crate::limits::{CONTENTS, LARGEST_SOURCE, SOURCES};

/// Where to look for the sources of generated code.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Whether to apply the source maps of scripts: those in a script, and those that it names and that are on this machine.
    pub use_maps: bool,
    /// Folders with source maps named `SCRIPT.map`.
    pub map_folders: Vec<PathBuf>,
    /// Folders with source files, for runtimes that give no path, or one of another machine.
    pub folders: Vec<PathBuf>,
    /// The cache of deno (`DENO_DIR`), which has the source maps of TypeScript.
    pub deno_cache: Option<PathBuf>,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self { use_maps: true, map_folders: Vec::new(), folders: Vec::new(), deno_cache: None }
    }
}

/// Number of source maps whose problems are reported.
const REPORTED: usize = 4;

/// The source of the script with a URL, as it was compiled; `None` if it is unknown.
pub type ScriptTexts<'a> = dyn Fn(&[u8]) -> Option<String> + Sync + 'a;

/// Answers where the lines of generated code are in the user's sources. Threads share it through [`CachedResolver`]s.
///
/// Files that are named by the recorded program are opened by a [`SourceFiles`], and only if it trusts them.
pub struct SourceResolver<'a> {
    use_maps: bool,
    deno_cache: Option<PathBuf>,
    files: &'a dyn SourceFiles,
    script_texts: Option<&'a ScriptTexts<'a>>,
    /// The users whose code is described.
    users: Vec<Option<u32>>,
    resolved: AppendOnly<ResolvedFile>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The numbers of the files that were resolved.
    known: HashMap<Box<[u8]>, usize>,
    /// The functions of Python files; `None` for files without text.
    python: HashMap<Box<[u8]>, Option<Definitions>>,
    folders: Folders,
    maps: Folders,
    missing: MissingFolders,
    /// Number of bytes that may still be read.
    left: u64,
    /// Number of bytes of sources in maps that may still be kept.
    left_contents: usize,
    originals: OriginalPlaces,
    warnings: Vec<Warning>,
    /// Number of warnings that were not kept.
    more_warnings: usize,
}

/// What is known of a file that a runtime named.
#[derive(Debug)]
struct ResolvedFile {
    name: Box<[u8]>,
    path: Box<[u8]>,
    script: Option<MappedScript>,
    /// Whether the file is what the script was compiled from: loaders that compile in memory keep its name.
    is_source: bool,
}

impl ResolvedFile {
    fn place<'s>(&'s self, position: Position<'s>, is_sampled: bool) -> Position<'s> {
        let Position { line, column, .. } = position;
        let original = match &self.script {
            Some(script) if line != 0 && is_sampled => script.sampled_original(line, column),
            Some(script) if line != 0 => script.original(line, column),
            _ => None,
        };
        match original {
            Some((file, line, column)) => Position { file, line, column },
            // The line is one of the compiled text; the file has others.
            None if self.is_source => Position { file: &[], line: 0, column: 0 },
            None => Position { file: &self.path, line, column },
        }
    }
}

impl fmt::Debug for SourceResolver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceResolver").field("use_maps", &self.use_maps).finish_non_exhaustive()
    }
}

impl<'a> SourceResolver<'a> {
    /// Nothing is read before it is needed.
    #[must_use]
    pub fn new(options: &SourceOptions, files: &'a dyn SourceFiles) -> Self {
        Self {
            use_maps: options.use_maps,
            deno_cache: options.deno_cache.clone(),
            files,
            script_texts: None,
            users: Vec::new(),
            resolved: AppendOnly::default(),
            state: Mutex::new(State {
                known: HashMap::new(),
                python: HashMap::new(),
                folders: Folders::new(&options.folders),
                maps: Folders::new(&options.map_folders),
                missing: MissingFolders::default(),
                left: SOURCES,
                left_contents: CONTENTS,
                originals: OriginalPlaces::default(),
                warnings: Vec::new(),
                more_warnings: 0,
            }),
        }
    }

    /// Sets what knows the sources of scripts. The file of a script may have another one: TypeScript is compiled in memory.
    #[must_use]
    pub fn script_texts(mut self, script_texts: &'a ScriptTexts<'a>) -> Self {
        self.script_texts = Some(script_texts);
        self
    }

    /// Sets the users whose code is described. Texts of sources are kept of maps that all of them may read: what is kept may be passed on.
    #[must_use]
    pub fn users(mut self, users: impl IntoIterator<Item = Option<u32>>) -> Self {
        self.users = users.into_iter().collect();
        self.users.sort_unstable();
        self.users.dedup();
        self
    }

    /// The places of functions in the sources that their scripts were compiled from, as far as they were asked for.
    #[must_use]
    pub fn take_originals(&self) -> OriginalPlaces {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.originals)
    }

    /// The sources of sampled code that scripts were compiled from, and their texts as far as maps have them and they may be kept.
    pub fn sampled_sources(&self) -> impl Iterator<Item = (&[u8], Option<&str>)> {
        let files = (0..).map_while(|number| self.resolved.get(number));
        files.filter_map(|file| file.script.as_ref()).flat_map(MappedScript::sampled)
    }

    /// A resolver for one thread, which remembers the answers.
    #[must_use]
    pub fn cached(&self) -> CachedResolver<'_> {
        CachedResolver {
            shared: self,
            known: RefCell::default(),
            last: Cell::default(),
            marks: Cell::new(false),
        }
    }

    /// What could not be used.
    #[must_use]
    pub fn into_warnings(self) -> Vec<Warning> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if state.more_warnings > 0 {
            let more = format!("{} more source maps cannot be used", state.more_warnings);
            state.warnings.push(Warning::Other(more));
        }
        if state.folders.is_incomplete() || state.maps.is_incomplete() {
            let text = "the folders with sources or source maps have too many files; some were not searched";
            state.warnings.push(Warning::Other(text.into()));
        }
        state.warnings
    }

    /// The file that a runtime named; `None` if there are too many.
    fn resolve(&self, name: &[u8]) -> Option<&ResolvedFile> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = state.known.get(name) {
            return self.resolved.get(number);
        }
        let path = source_name(name);
        let script = self.script(name, &path, &mut state);
        let path = self.found(path.into_owned(), &mut state).into_boxed_slice();
        let number = state.known.len();
        state.known.insert(name.into(), number);
        let is_source = script.as_ref().is_some_and(|script| script.has_source(&path));
        self.resolved.set(number, ResolvedFile { name: name.into(), path, script, is_source })
    }

    /// The path of a source on this machine, if one of the folders has it and nothing is at the path itself.
    fn found(&self, path: Vec<u8>, state: &mut State) -> Vec<u8> {
        if state.folders.is_empty() || path.is_empty() {
            return path;
        }
        if path.starts_with(b"/") && self.files.is_file(Path::new(OsStr::from_bytes(&path))) {
            return path;
        }
        let found = state.folders.find(&path);
        found.map(|found| found.as_os_str().as_bytes().to_vec()).unwrap_or(path)
    }

    /// The script `name`, at `path`, with its source map.
    fn script(&self, name: &[u8], path: &[u8], state: &mut State) -> Option<MappedScript> {
        if !self.use_maps {
            return None;
        }
        let compiled = self.compiled_text(name, state);
        // What V8 compiled is a script, however it is called: `App.vue?vue&type=script`.
        if compiled.is_none() && !may_be_script(path) {
            return None;
        }
        let in_folder = [path, b".map"].concat();
        if let Some(map) = state.maps.find(&in_folder).map(Path::to_owned) {
            return self.read_map(&map, state);
        }
        let script_path = Path::new(OsStr::from_bytes(path));
        let is_file = path.starts_with(b"/");
        let script = match compiled {
            // The process itself said what the text is.
            Some(text) => SourceText { bytes: text, file: None },
            // Most names of scripts that cannot be read are those of other machines or containers.
            None if is_file => self.read(script_path, state).ok()?,
            None => return None,
        };
        let Some(url) = MapUrl::of_script(&script.bytes) else {
            let map = self.map_of_deno(path, &script.bytes, state)?;
            return self.script_of(script_path, &map, folder_of(path), state);
        };
        match url {
            MapUrl::Inline(map) => {
                let map = SourceText { bytes: map, ..script };
                self.script_of(script_path, &map, folder_of(path), state)
            }
            MapUrl::At(_) if !is_file => None,
            MapUrl::At(url) => {
                let url = source_name(&url);
                let has_scheme = url.contains(&b':') || is_remote(&url);
                let relative: Cow<'_, [u8]> = source_map::percent_decoded(&url);
                let map = joined(folder_of(path), &relative);
                if has_scheme {
                    return None;
                }
                self.read_map(Path::new(OsStr::from_bytes(&map)), state)
            }
        }
    }

    /// The source of a script as it was compiled.
    fn compiled_text(&self, name: &[u8], state: &mut State) -> Option<Vec<u8>> {
        let text = self.script_texts.and_then(|text_of| text_of(name))?.into_bytes();
        let size = text.len() as u64;
        let left = state.left.checked_sub(size).filter(|_| size <= LARGEST_SOURCE)?;
        state.left = left;
        Some(text)
    }

    /// The source map that deno keeps of the script at `path`, if `script` is what it was compiled to.
    fn map_of_deno(&self, path: &[u8], script: &[u8], state: &mut State) -> Option<SourceText> {
        let kept = deno::compiled(self.deno_cache.as_deref()?, path)?;
        let kept = self.read(&kept, state).ok()?;
        match MapUrl::of_script(&kept.bytes)? {
            MapUrl::Inline(map) if kept.bytes.starts_with(script.trim_ascii_end()) => {
                Some(SourceText { bytes: map, ..kept })
            }
            _ => None,
        }
    }

    fn read_map(&self, path: &Path, state: &mut State) -> Option<MappedScript> {
        match self.read(path, state) {
            Ok(map) => {
                let folder = folder_of(path.as_os_str().as_bytes());
                self.script_of(path, &map, folder, state)
            }
            // Packages often name maps that they do not contain.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                state.warn(path, &error.to_string());
                None
            }
        }
    }

    /// The script with a map, which was in the file `path`; names are relative to `folder`.
    fn script_of(
        &self,
        path: &Path,
        text: &SourceText,
        folder: &[u8],
        state: &mut State,
    ) -> Option<MappedScript> {
        match SourceMap::parse(&text.bytes) {
            Ok(mut map) => {
                let mut contents = map.take_contents();
                let is_shown = contents.iter().any(Option::is_some) && self.all_may_read(text);
                for content in &mut contents {
                    let size = content.as_ref().map_or(0, String::len);
                    match state.left_contents.checked_sub(size).filter(|_| is_shown) {
                        Some(left) => state.left_contents = left,
                        None => *content = None,
                    }
                }
                if let Some(damage) = map.damage() {
                    state.warn(path, &format!("{damage}; the positions before that are used"));
                }
                let script = MappedScript::new(map, folder, |source| self.found(source, state));
                Some(script.with_contents(contents))
            }
            Err(error) => {
                state.warn(path, &error.to_string());
                None
            }
        }
    }

    fn read(&self, path: &Path, state: &mut State) -> io::Result<SourceText> {
        let name = path.as_os_str().as_bytes();
        if state.missing.have(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // No process is known to have named the file, so it must belong to a user who is trusted for all.
        let owner = self.files.trust(path, 0, None).map_err(|_| {
            io::Error::new(io::ErrorKind::PermissionDenied, "belongs to another user")
        })?;
        let opened = self.files.open(path, owner);
        if is_missing(&opened) {
            // A folder that exists is not a regular file, which is another error.
            state.missing.add(name, |folder| !is_missing(&self.files.open(folder, None)));
        }
        let file = opened?;
        let most = LARGEST_SOURCE.min(state.left);
        let content = content::text(&file, most)?;
        state.left = state.left.saturating_sub(content.bytes.len() as u64);
        match content.left_out {
            Some(left_out) => Err(io::Error::other(left_out)),
            None => {
                let file = Some((path.to_owned(), file.metadata()?));
                Ok(SourceText { bytes: content.bytes, file })
            }
        }
    }

    /// Whether all users whose code is described may read a text. Another file may be at its path by now.
    fn all_may_read(&self, text: &SourceText) -> bool {
        let Some((path, opened)) = &text.file else { return true };
        let may_read = |user: &Option<u32>| {
            let again = self.files.open_source(path, *user).and_then(|file| file.metadata());
            again.is_ok_and(|file| (file.dev(), file.ino()) == (opened.dev(), opened.ino()))
        };
        !self.users.is_empty() && self.users.iter().all(may_read)
    }

    /// The line of the Python function with this qualified name; 0 if unknown.
    fn python_line(&self, function: &[u8], file: &[u8]) -> u32 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let line_in = |known: &Option<Definitions>| known.as_ref()?.line(function);
        if let Some(known) = state.python.get(file) {
            return line_in(known).unwrap_or(0);
        }
        let path = Path::new(OsStr::from_bytes(file));
        let text = if file.starts_with(b"/") { self.read(path, &mut state).ok() } else { None };
        // Also a file that cannot be read would have a first line, where its module begins.
        let text = text.filter(|text| !text.bytes.is_empty());
        let known = text.map(|text| Definitions::read(&text.bytes));
        let line = line_in(&known);
        state.python.insert(file.into(), known);
        line.unwrap_or(0)
    }
}

/// The content of a script or of a source map.
struct SourceText {
    bytes: Vec<u8>,
    /// The path by which its file was opened, and which file that was. `None` if the process itself said what the text is.
    file: Option<(PathBuf, Metadata)>,
}

/// Whether a file was not opened because it does not exist.
fn is_missing<T>(opened: &io::Result<T>) -> bool {
    opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether a name was a URL of another machine.
fn is_remote(name: &[u8]) -> bool {
    [&b"http/"[..], b"https/"].iter().any(|scheme| name.starts_with(scheme))
}

impl State {
    fn warn(&mut self, path: &Path, cause: &str) {
        if self.warnings.len() >= REPORTED {
            self.more_warnings += 1;
            return;
        }
        self.warnings.push(Warning::SourceMap { path: path.to_owned(), cause: cause.to_owned() });
    }
}

/// A [`SourceResolver`] that remembers the answers, for one thread.
#[derive(Debug)]
pub struct CachedResolver<'a> {
    shared: &'a SourceResolver<'a>,
    /// By name.
    known: RefCell<HashMap<&'a [u8], &'a ResolvedFile>>,
    /// The last file requested: most lines are in the same file as the line before.
    last: Cell<Option<&'a ResolvedFile>>,
    /// Whether the sources of positions are marked as sampled.
    marks: Cell<bool>,
}

impl<'a> CachedResolver<'a> {
    /// The position in the user's source of a position in a file that the runtime named.
    pub fn place<'s>(&self, position: Position<'s>) -> Position<'s>
    where
        'a: 's,
    {
        if position.file.is_empty() {
            return position;
        }
        let is_sampled = self.marks.get();
        self.resolve(position.file).map_or(position, |file| file.place(position, is_sampled))
    }

    /// Sets whether the positions that are asked for next are those of sampled code.
    pub fn marks(&self, is_sampled: bool) {
        self.marks.set(is_sampled);
    }

    /// Finds the place in the user's sources of a function that is defined at a place in a file that the runtime named.
    pub fn define(&self, name: &[u8], line: u32, column: u32) {
        let Some(file) = self.resolve(name) else { return };
        let path = source_name(name);
        let place = file.place(Position { file: &file.path, line, column }, self.marks.get());
        // A compiled line is no line of the source. Without it, the file is still the same.
        let place_file = if place.file.is_empty() { &file.path } else { place.file };
        if (place_file, place.line, place.column) == (&*path, line, column) {
            return;
        }
        // Lists of codes are text.
        let Ok(original) = std::str::from_utf8(place_file) else { return };
        let original = SourcePlace(original.to_owned(), place.line, place.column);
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.originals.add(&path, (line, column), original);
    }

    /// The position of a whole code named `name`, if it has no lines: the place in its name, or that of the definition of a Python function.
    pub fn whole(&self, name: &[u8], load: Option<&CodeLoad<'_>>) -> Option<Position<'a>> {
        if load.is_some_and(|load| load.lines().chain(load.ir_lines()).next().is_some()) {
            return None;
        }
        let name = FunctionName::of(name);
        if name.file.is_empty() {
            return None;
        }
        let file = self.resolve(name.file)?;
        let place = match name.kind {
            NameKind::Compiled => {
                let position = Position { file: b"", line: name.line, column: name.column };
                file.place(position, self.marks.get())
            }
            NameKind::Trampoline => {
                let line = self.shared.python_line(&name.function, &file.path);
                Position { file: &file.path, line, column: 0 }
            }
        };
        (place.line != 0).then_some(place)
    }

    fn resolve(&self, name: &[u8]) -> Option<&'a ResolvedFile> {
        if let Some(last) = self.last.get().filter(|last| *last.name == *name) {
            return Some(last);
        }
        let mut known = self.known.borrow_mut();
        let file = match known.get(name) {
            Some(&file) => file,
            None => {
                let file = self.shared.resolve(name)?;
                known.insert(&file.name, file);
                file
            }
        };
        self.last.set(Some(file));
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::PlainFiles;

    /// Maps the first column of the second line to line 7 of `src/a.ts`.
    const MAP: &str = r#"{"version":3,"sources":["../src/a.ts"],"mappings":";AAMA"}"#;

    /// A folder that belongs to the user, with `dist/a.js`, `src/a.ts` and what else is given.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files.iter().chain(&[("src/a.ts", "")]) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    /// The file and line for line 2 of a file, without the folder.
    fn place(options: &SourceOptions, folder: &Path, name: &str) -> (String, u32) {
        let resolver = SourceResolver::new(options, &PlainFiles);
        let file = resolver.cached().resolve(name.as_bytes()).unwrap();
        let place = file.place(Position { file: b"", line: 2, column: 3 }, false);
        let path = String::from_utf8_lossy(place.file).into_owned();
        let root = format!("{}/", folder.to_str().unwrap());
        (path.replace(&root, ""), place.line)
    }

    #[test]
    fn lines_of_scripts_go_through_their_maps() {
        let encoded = MAP.replace('"', "%22");
        let inline = format!("f();\n//# sourceMappingURL=data:application/json,{encoded}\n");
        let named = "f();\n//# sourceMappingURL=a%20map.json\n";
        let remote = "f();\n//# sourceMappingURL=https://example.org/a.map\n";
        let folder = folder(&[
            ("dist/inline.js", &inline),
            ("dist/named.mjs", named),
            ("dist/a map.json", MAP),
            ("dist/remote.js", remote),
            ("dist/none.js", "f();\n"),
            ("maps/dist/none.js.map", MAP),
        ]);
        let folder = folder.path();
        let default = SourceOptions::default();
        let path = |name: &str| format!("{}/{name}", folder.to_str().unwrap());
        let at = |options: &SourceOptions, name: &str| place(options, folder, name);
        let original = ("src/a.ts".to_owned(), 7);
        assert_eq!(at(&default, &path("dist/inline.js")), original);
        assert_eq!(at(&default, &format!("file://{}", path("dist/inline.js?v=1"))), original);
        assert_eq!(at(&default, &path("dist/named.mjs")), original);
        for name in ["dist/remote.js", "dist/none.js", "dist/missing.js"] {
            assert_eq!(at(&default, &path(name)), (name.to_owned(), 2));
        }
        let off = SourceOptions { use_maps: false, ..SourceOptions::default() };
        assert_eq!(at(&off, &path("dist/inline.js")), ("dist/inline.js".to_owned(), 2));
        let maps = vec![folder.join("maps")];
        let with_maps = SourceOptions { map_folders: maps, ..SourceOptions::default() };
        // The source is relative to the map.
        assert_eq!(at(&with_maps, "none.js"), ("maps/src/a.ts".to_owned(), 7));
        let folders = vec![folder.join("src")];
        let with_sources = SourceOptions { folders, ..with_maps };
        assert_eq!(at(&with_sources, "none.js").1, 7);
        assert_eq!(at(&with_sources, "a.ts"), ("src/a.ts".to_owned(), 2));
    }

    /// What was compiled may not be what the file has.
    #[test]
    fn lines_of_scripts_that_were_compiled_in_memory() {
        let inline = format!(
            "f();\n//# sourceMappingURL=data:application/json,{}\n",
            MAP.replace('"', "%22")
        );
        let folder = folder(&[("dist/loaded.ts", "// TypeScript"), ("dist/deno.ts", "// more")]);
        let root = folder.path().to_str().unwrap();
        let emitted = folder.path().join(format!("cache/gen/file{root}/dist/deno.ts.js"));
        fs::create_dir_all(emitted.parent().unwrap()).unwrap();
        fs::write(&emitted, inline.replace("../src", &format!("{root}/src"))).unwrap();
        let loaded = inline.clone();
        let options = SourceOptions {
            deno_cache: Some(folder.path().join("cache")),
            ..SourceOptions::default()
        };
        let line_of = |name: &str, text: &str| {
            let text_of = |url: &[u8]| (url == name.as_bytes()).then(|| text.to_owned());
            let resolver = SourceResolver::new(&options, &PlainFiles).script_texts(&text_of);
            let file = resolver.cached().resolve(name.as_bytes()).unwrap();
            let place = file.place(Position { file: b"", line: 2, column: 3 }, false);
            (String::from_utf8_lossy(place.file).replace(&format!("{root}/"), ""), place.line)
        };
        let original = ("src/a.ts".to_owned(), 7);
        assert_eq!(line_of(&format!("{root}/dist/loaded.ts"), &loaded), original);
        let of_deno = format!("file://{root}/dist/deno.ts");
        assert_eq!(line_of(&of_deno, "f();\n"), original);
        // The cache has what was compiled at another time.
        assert_eq!(line_of(&of_deno, "g();\n"), ("dist/deno.ts".to_owned(), 2));
        assert_eq!(line_of("evalmachine.ts", &loaded).1, 7);
        // Line 2 of what was compiled is on no line of the source; it is not line 2 of it.
        let unmapped = loaded.replace("../src/a.ts", "loaded.ts").replace(";AAMA", "AAMA");
        assert_eq!(line_of(&format!("{root}/dist/loaded.ts"), &unmapped), (String::new(), 0));
        assert_eq!(line_of("named.ts", "//# sourceMappingURL=x.map"), ("named.ts".to_owned(), 2));
    }

    /// Files of which the map is readable for all, and by its owner alone.
    #[test]
    fn texts_in_maps_are_kept_if_all_users_may_read_them() {
        use std::os::unix::fs::PermissionsExt;

        let map = MAP.replace("\"names\"", "").replace('}', r#","sourcesContent":["text"]}"#);
        let folder = folder(&[("dist/a.js", "//# sourceMappingURL=a.map"), ("dist/a.map", &map)]);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let script = folder.path().join("dist/a.js");
        let script = script.as_os_str().as_bytes();
        let us = Some(rustix::process::geteuid().as_raw());
        let kept = |users: &[Option<u32>], mode| {
            let map = folder.path().join("dist/a.map");
            fs::set_permissions(map, fs::Permissions::from_mode(mode)).unwrap();
            let options = SourceOptions::default();
            let resolver = SourceResolver::new(&options, &PlainFiles).users(users.to_vec());
            let cached = resolver.cached();
            cached.place(Position { file: script, line: 2, column: 3 });
            assert_eq!(resolver.sampled_sources().count(), 0, "nothing was sampled");
            cached.marks(true);
            cached.place(Position { file: script, line: 2, column: 3 });
            cached.define(script, 2, 3);
            let originals = resolver.take_originals();
            let source = folder.path().join("src/a.ts");
            let place = SourcePlace(source.to_str().unwrap().to_owned(), 7, 1);
            assert_eq!(originals.of(script, (2, 3)), Some(&place));
            let sources: Vec<_> = resolver
                .sampled_sources()
                .map(|(path, text)| (path.to_vec(), text.map(str::to_owned)))
                .collect();
            assert_eq!(sources.len(), 1);
            assert_eq!(sources[0].0, source.as_os_str().as_bytes());
            sources[0].1.clone()
        };
        assert_eq!(kept(&[us], 0o600).as_deref(), Some("text"));
        assert_eq!(kept(&[], 0o644), None);
        // A user who may not read the map, and one who is not known.
        assert_eq!(kept(&[us, Some(65_533)], 0o600), None);
        assert_eq!(kept(&[None], 0o600), None);
    }

    #[test]
    fn damaged_maps_are_reported() {
        let folder = folder(&[
            ("a.js", "//# sourceMappingURL=a.map"),
            ("a.map", "{"),
            ("b.js", "//# sourceMappingURL=b.map"),
            ("b.map", r#"{"version":3,"sources":["x.ts"],"mappings":"AAAA;!"}"#),
        ]);
        let resolver = SourceResolver::new(&SourceOptions::default(), &PlainFiles);
        for name in ["a.js", "b.js"] {
            let path = folder.path().join(name);
            resolver.cached().resolve(path.as_os_str().as_bytes());
        }
        let warnings: Vec<String> = resolver.into_warnings().into_iter().map(Into::into).collect();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("a.map: source map: not a source map"), "{warnings:?}");
        assert!(warnings[1].contains("b.map: source map: character 5"), "{warnings:?}");
    }

    #[test]
    fn python_functions_have_the_line_of_their_definition() {
        let folder = folder(&[("app.py", "import os\n\ndef f():\n  pass\n")]);
        let path = folder.path().join("app.py");
        let resolver = SourceResolver::new(&SourceOptions::default(), &PlainFiles);
        let cached = resolver.cached();
        let line = |name: &str| {
            let whole = cached.whole(name.as_bytes(), None);
            whole.map(|whole| (whole.file.to_vec(), whole.line))
        };
        let shown = path.to_str().unwrap();
        let file = shown.as_bytes().to_vec();
        assert_eq!(line(&format!("py::f:{shown}")), Some((file.clone(), 3)));
        assert_eq!(line(&format!("py::<module>:{shown}")), Some((file, 1)));
        assert_eq!(line(&format!("py::g:{shown}")), None);
        for _ in 0..2 {
            assert_eq!(line("py::<module>:<string>"), None);
        }
        assert_eq!(line("f"), None);
    }

    #[test]
    fn names_with_a_place_have_its_line() {
        let folder = folder(&[("p.raku", "sub f { }")]);
        let options =
            SourceOptions { folders: vec![folder.path().into()], ..SourceOptions::default() };
        let resolver = SourceResolver::new(&options, &PlainFiles);
        let cached = resolver.cached();
        let place = |name: &str| {
            let whole = cached.whole(name.as_bytes(), None)?;
            Some((String::from_utf8_lossy(whole.file).into_owned(), whole.line, whole.column))
        };
        let found = folder.path().join("p.raku").to_str().unwrap().to_owned();
        assert_eq!(place("f(p.raku:1)"), Some((found, 1, 0)));
        assert_eq!(place("f(gen/moar/q.nqp:7)"), Some(("gen/moar/q.nqp".into(), 7, 0)));
        assert_eq!(place("JS:*f node:fs:3:5"), Some(("node/fs".into(), 3, 5)));
        assert_eq!(place("TRACE-1$f$5"), None);
        assert_eq!(place("f"), None);
    }
}
