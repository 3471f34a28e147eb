//! The process that answers a debugger's script: requests and answers are lines of JSON on standard input and output.
//!
//! It ends when its standard input does, and deletes its symbol files.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::ops::Range;
use std::path::PathBuf;

use jitdump::extension::control;
use serde::{Deserialize, Serialize};

use super::live::{self, Plain};
use super::shown::{Change, Shown, folder_in};
use super::sources::Sources;
use super::switch;
use super::unwind::{self, CodeAt};
use crate::files::{Kind, Named};
use crate::text::Out;
use crate::{Error, Result, process};

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Request {
    /// Brings the symbol files of an inferior up to date.
    Sync {
        /// The debugger's number for the process.
        inferior: u64,
        /// Where the code is.
        of: Subject,
        /// Address and size of the codes that the debugger knows from the process itself.
        registered: Vec<(u64, u64)>,
        /// Where the process was stopped.
        #[serde(default)]
        pc: Option<u64>,
    },
    /// Finds the code at an address.
    Unwind {
        /// The debugger's number for the process.
        inferior: u64,
        /// The address.
        pc: u64,
        /// Whether it is in a symbol file; the code is then of interest only if it has no unwind info.
        shown: bool,
    },
    /// The process has ended, or the debugger has left it.
    Forget {
        /// The debugger's number for the process.
        inferior: u64,
        /// Whether the process registered all code before the debugger asked it not to.
        registers: bool,
    },
}

/// What is debugged.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// This process.
    Pid(u32),
    /// This core file.
    Core(PathBuf),
}

/// An answer.
#[derive(Debug, Default, Serialize)]
struct Answer {
    /// Symbol files that the debugger must forget.
    remove: Vec<PathBuf>,
    /// Symbol files that it must read.
    add: Vec<PathBuf>,
    /// The addresses of code logs.
    logs: Vec<u64>,
    /// The number of jitdumps and perf maps.
    files: usize,
    /// The number of codes shown by symbol files.
    codes: usize,
    /// How many of them have no unwind info.
    plain: usize,
    /// The number of symbol files.
    symbol_files: usize,
    /// The code at an address.
    code: Option<CodeAt>,
    /// Messages for the user.
    notes: Vec<String>,
}

/// A process that is debugged.
#[derive(Debug)]
struct Inferior {
    of: Subject,
    sources: Sources,
    shown: Shown,
    plain: Plain,
    /// The messages that the user has got. Each is shown once.
    said: HashSet<String>,
}

#[derive(Debug)]
struct Server {
    named: Vec<(Kind, Named)>,
    folder: tempfile::TempDir,
    folders: usize,
    inferiors: HashMap<u64, Inferior>,
}

/// Answers requests until standard input ends. `named` are files that the user named.
///
/// # Errors
/// If the folder for symbol files cannot be created, or standard output is closed.
pub fn serve(named: Vec<(Kind, Named)>) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("jitscribe-debug-")
        .tempdir()
        .map_err(Error::file(std::env::temp_dir()))?;
    let mut server = Server { named, folder, folders: 0, inferiors: HashMap::new() };
    let mut out = Out::by_lines();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(Error::file("standard input"))?;
        let answer = match serde_json::from_str(&line) {
            Ok(request) => server.answer(request),
            Err(error) => Answer { notes: vec![error.to_string()], ..Answer::default() },
        };
        out.json(&answer)?;
    }
    out.finish()
}

impl Subject {
    /// Reads what it has now.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, sources: &mut Sources) -> Result<()> {
        match self {
            Self::Pid(pid) => sources.read_process(*pid),
            Self::Core(path) => sources.read_core(path),
        }
    }
}

impl Inferior {
    /// The code at an address of which the debugger knows nothing yet.
    fn new_code_at(&mut self, pc: u64) -> Option<CodeAt> {
        self.of.read(&mut self.sources).ok()?;
        let nameless = || self.sources.memory.contains(pc).then(CodeAt::nameless);
        unwind::code_at(&self.sources, pc).or_else(nameless)
    }
}

impl Server {
    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Sync { inferior, of, registered, pc } => {
                let mut answer = Answer::default();
                if let Err(error) = self.sync(inferior, of, &registered, pc, &mut answer) {
                    answer.notes.push(error.to_string());
                }
                answer
            }
            Request::Unwind { inferior, pc, shown } => {
                let inferior = self.inferiors.get_mut(&inferior);
                let code = inferior.and_then(|inferior| match shown {
                    true => Some(CodeAt::plain(inferior.plain.start(pc)?)),
                    false => inferior.new_code_at(pc),
                });
                Answer { code, ..Answer::default() }
            }
            Request::Forget { inferior, registers } => {
                let of = self.inferiors.remove(&inferior).map(|inferior| inferior.of);
                if let Some(Subject::Pid(pid)) = of {
                    release(pid, registers);
                }
                Answer::default()
            }
        }
    }

    fn sync(
        &mut self,
        number: u64,
        of: Subject,
        registered: &[(u64, u64)],
        pc: Option<u64>,
        answer: &mut Answer,
    ) -> Result<()> {
        if self.inferiors.get(&number).is_none_or(|inferior| inferior.of != of) {
            let folder = folder_in(self.folder.path(), self.folders)?;
            self.folders += 1;
            let sources = Sources::with_named(self.named.clone());
            let (shown, plain, said) = (Shown::new(folder), Plain::default(), HashSet::new());
            let inferior = Inferior { of, sources, shown, plain, said };
            self.inferiors.insert(number, inferior);
        }
        let Some(Inferior { of, sources, shown, plain, said }) = self.inferiors.get_mut(&number)
        else {
            return Ok(());
        };
        of.read(sources)?;
        let registered: Vec<Range<u64>> =
            registered.iter().map(|(start, size)| *start..start.saturating_add(*size)).collect();
        let (Change { remove, add }, without_info) = live::show(sources, &registered, shown)?;
        *plain = without_info;
        let mut notes = std::mem::take(&mut sources.notes);
        let is_announced =
            !sources.logs.is_empty() || sources.files() > 0 || !registered.is_empty();
        if !is_announced && !sources.memory.is_empty() {
            let is_stopped_in_it = pc.is_some_and(|pc| sources.memory.contains(pc));
            notes.extend(switch::message(sources.memory.files(), is_stopped_in_it));
        }
        notes.retain(|note| said.insert(note.clone()));
        *answer = Answer {
            remove,
            add,
            logs: sources.logs.clone(),
            files: sources.files(),
            codes: shown.codes(),
            plain: plain.len(),
            symbol_files: shown.files(),
            notes,
            code: None,
        };
        Ok(())
    }
}

/// Lets a process that still runs do again what it did before the debugger came.
fn release(pid: u32, registers: bool) {
    // Most often it has ended.
    let logs = process::logs_for_requests(pid).unwrap_or_default();
    for log in logs.iter().filter(|log| log.is_own()) {
        let asked = log.head.control;
        if asked & control::BREAKPOINTS != 0 {
            let before = asked & !(control::BREAKPOINTS | control::GDB);
            let all = if registers { control::GDB } else { 0 };
            // If it ends meanwhile, nothing is left to do.
            let _ = log.request(before | all | control::REQUEST);
        }
    }
}
