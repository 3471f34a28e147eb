//! Names addresses from the jitdumps and perf maps of their processes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use valgrind_log::{Frame, Named, Namer};

use super::file_args::FileArgs;
use crate::symbols::{SourceSummary, SymbolIndex, no_code_found};
use crate::{Error, Result};

/// The maximum number of nested inlined calls shown at one address.
const DEEPEST: usize = 64;
/// The number of processes whose code is held at a time.
const PROCESSES: usize = 32;
/// The number of cached answers.
const ANSWERS: usize = 1 << 18;
/// The number of processes to warn about.
const WARNED: usize = 4;

/// Names addresses.
#[derive(Debug)]
pub struct CodeNamer<'a> {
    args: &'a FileArgs,
    beside: PathBuf,
    /// The process id in the file's name.
    pid: Option<u32>,
    processes: HashMap<Option<u32>, Process>,
    parents: HashMap<u32, u32>,
    answers: HashMap<(Option<u32>, u64), Option<Rc<Named>>>,
    found: NamingSummary,
    error: Option<Error>,
}

/// What was found while naming addresses.
#[derive(Debug, Default)]
pub struct NamingSummary {
    /// The files with code.
    pub sources: Vec<SourceSummary>,
    /// What was skipped or corrected.
    pub warnings: Vec<String>,
    /// The number of processes with unnamed addresses for which no files were found.
    pub untold: usize,
}

#[derive(Debug)]
struct Process {
    code: SymbolIndex,
    read: Instant,
    took: Duration,
}

impl<'a> CodeNamer<'a> {
    /// Creates a namer for the addresses of a file.
    pub fn new(args: &'a FileArgs) -> Self {
        let beside = if args.is_stdin() { Path::new("./-") } else { &args.input };
        Self {
            args,
            beside: beside.to_owned(),
            pid: args.pid_in_name(),
            processes: HashMap::new(),
            parents: HashMap::new(),
            answers: HashMap::new(),
            found: NamingSummary::default(),
            error: None,
        }
    }

    /// Returns what was found, or an error if a file with code could not be read.
    pub fn finish(self) -> Result<NamingSummary> {
        self.error.map_or(Ok(self.found), Err)
    }

    fn answer(&mut self, pid: Option<u32>, address: u64) -> Result<Option<Rc<Named>>> {
        let mut asked = pid;
        // A forked child has its parent's code. 16 generations are enough for any real program.
        for _ in 0..16 {
            self.read(asked)?;
            if let Some(named) = self.named(asked, address)? {
                return Ok(Some(named));
            }
            match asked.and_then(|pid| self.parents.get(&pid)) {
                Some(&parent) => asked = Some(parent),
                None => break,
            }
        }
        Ok(None)
    }

    /// Reads the code of a process, unless it has been read already.
    fn read(&mut self, pid: Option<u32>) -> Result<()> {
        if let Some(process) = self.processes.get(&pid) {
            // Piped input comes from a process that still runs and announces more code, so its files are read again.
            let soon = process.took * 20 + Duration::from_millis(20);
            if !self.args.is_stdin() || process.read.elapsed() < soon {
                return Ok(());
            }
        }
        if self.processes.len() >= PROCESSES {
            self.processes.clear();
        }
        let begin = Instant::now();
        let mut warnings = Vec::new();
        let code = SymbolIndex::of(&self.args.sources, pid, &self.beside, &mut warnings)?;
        let process = Process { read: Instant::now(), took: begin.elapsed(), code };
        for warning in warnings {
            if !self.found.warnings.contains(&warning) && self.found.warnings.len() < 100 {
                self.found.warnings.push(warning);
            }
        }
        for source in process.code.sources() {
            let mut known = self.found.sources.iter_mut();
            match known.find(|known| known.path == source.path) {
                Some(known) => *known = source.clone(),
                None => self.found.sources.push(source.clone()),
            }
        }
        let is_new = self.processes.insert(pid, process).is_none();
        let is_empty = self.processes.get(&pid).is_none_or(|process| process.code.is_empty());
        // A child may have no code of its own, only that of its parent.
        let is_child = pid.is_some_and(|pid| self.parents.contains_key(&pid));
        if is_new && is_empty && !is_child {
            self.found.untold += 1;
            if self.found.untold <= WARNED && self.found.sources.is_empty() {
                self.found.warnings.push(no_code_found(pid));
            }
        }
        Ok(())
    }

    fn named(&mut self, pid: Option<u32>, address: u64) -> Result<Option<Rc<Named>>> {
        let Some(Process { code, .. }) = self.processes.get_mut(&pid) else { return Ok(None) };
        let Some(known) = code.at(address) else { return Ok(None) };
        let places = code.places(&known)?;
        let leaving = &self.args.sources.leaving;
        let stays = |path: &&Path| !leaving.iter().any(|folder| path.starts_with(folder));
        let object = code.source_of(&known).filter(stays);
        let object = object.map(|path| path.as_os_str().as_encoded_bytes()).unwrap_or_default();
        let mut frames: Vec<Frame> = places
            .at(address)
            .map(|place| {
                let (folder, file) = split(place.file);
                let full = self.args.full_path;
                Frame {
                    function: place.function.to_vec(),
                    folder: folder.to_vec(),
                    file: if full { place.file.to_vec() } else { file.to_vec() },
                    line: place.line,
                    object: object.to_vec(),
                }
            })
            .collect();
        // Keep the innermost frames and that of the code itself.
        if frames.len() > DEEPEST {
            frames.drain(DEEPEST - 1..frames.len() - 1);
        }
        Ok(Some(Rc::new(Named { frames, doubtful: code.is_ambiguous_at(address) })))
    }
}

impl Namer for CodeNamer<'_> {
    fn name(&mut self, pid: Option<u32>, address: u64) -> Option<Rc<Named>> {
        let pid = pid.or(self.pid);
        let live = self.args.is_stdin();
        if let Some(answer) = self.answers.get(&(pid, address))
            && (answer.is_some() || !live)
        {
            return answer.clone();
        }
        if self.error.is_some() {
            return None;
        }
        let answer = self.answer(pid, address).unwrap_or_else(|error| {
            self.error = Some(error);
            None
        });
        if self.answers.len() >= ANSWERS {
            self.answers.clear();
        }
        self.answers.insert((pid, address), answer.clone());
        answer
    }

    fn parent(&mut self, pid: u32, parent: u32) {
        self.parents.insert(pid, parent);
    }
}

/// The folder and the name of a file.
fn split(file: &[u8]) -> (&[u8], &[u8]) {
    match file.iter().rposition(|&byte| byte == b'/') {
        Some(at) if at + 1 < file.len() => (&file[..at.max(1)], &file[at + 1..]),
        _ => (b"", file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_split_at_the_last_folder() {
        for (file, folder, name) in [
            ("/src/a.js", "/src", "a.js"),
            ("/a.js", "/", "a.js"),
            ("src/a.c", "src", "a.c"),
            ("node/internal/fs", "node/internal", "fs"),
            ("/src/", "", "/src/"),
            ("a.c", "", "a.c"),
            ("", "", ""),
        ] {
            let (is_folder, is_name) = split(file.as_bytes());
            assert_eq!((is_folder, is_name), (folder.as_bytes(), name.as_bytes()), "{file}");
        }
    }
}
