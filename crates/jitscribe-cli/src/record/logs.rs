//! The code logs of running processes: held open while perf records, read before and after. Those that began meanwhile
//! are read if their processes are still there afterwards.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jitdump::extension::control;

use super::whose::Whose;
use crate::files::Named;
use crate::process::{Beside, CodeBytes, Log, Memory, Told, dump_of, logs_of};
use crate::{Error, Result, note};

/// The logs of the processes that are being recorded.
#[derive(Debug)]
pub struct Logs {
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    log: Log,
    /// What its control word was, if we changed it.
    control: Option<u32>,
    /// What it told before the recording: code that dies meanwhile may be gone from it afterwards.
    before: Option<Told>,
}

impl Logs {
    /// Opens the logs that are there. With `ask`, processes that were named are asked to keep the bytes of what they announce
    /// from now on, and to announce if they do not.
    pub fn open(whose: &Whose, ask: bool) -> Self {
        let ask = ask && whose.is_named();
        let mut found = Vec::new();
        for pid in whose.pids() {
            match logs_of(pid) {
                Ok(logs) => found.extend(logs),
                Err(error) if whose.is_named() => note::warning(error),
                Err(_) => {}
            }
        }
        // perf sees dumps that are files by their markers.
        found.retain(|log| !log.is_dump());
        Self { watched: found.into_iter().map(|log| Watched::new(log, ask)).collect() }
    }

    /// The logs that came to be since, of these processes.
    fn open_new(&mut self, pids: &[u32]) {
        let known: HashSet<_> = self.watched.iter().map(|watched| watched.log.identity()).collect();
        let logs = pids.iter().copied().flat_map(logs_of).flatten();
        let new = logs.filter(|log| !log.is_dump() && !known.contains(&log.identity()));
        let new: Vec<_> = new.map(|log| Watched { log, control: None, before: None }).collect();
        self.watched.extend(new);
    }

    /// Writes what the logs tell into `folder`, those of these processes with them that came to be since, and gives the
    /// processes back as they were. Returns the dumps, and whose they are.
    pub fn collect(mut self, pids: &[u32], folder: &Path) -> Vec<Named> {
        self.open_new(pids);
        let mut dumps = Vec::new();
        for (number, watched) in self.watched.into_iter().enumerate() {
            let pid = watched.log.pid;
            match watched.finish(folder, number) {
                Ok(Some(path)) => dumps.push(Named { pid: Some(pid), path }),
                Ok(None) => {}
                Err(error) => note::warning(format_args!(
                    "the code log of process {pid} is left out: {error}"
                )),
            }
        }
        dumps
    }
}

impl Watched {
    fn new(log: Log, ask: bool) -> Self {
        let mut control = None;
        if ask && log.is_own() {
            let old = log.head.control;
            let wish = old | control::LOG | control::BYTES | control::WISH;
            if wish != old | control::WISH {
                match log.set_control(wish) {
                    Ok(()) => control = Some(old),
                    Err(error) => note::warning(format_args!(
                        "process {} could not be asked: {error}",
                        log.pid
                    )),
                }
            }
        }
        let before = told(&log, None).ok();
        Self { log, control, before }
    }

    fn finish(self, folder: &Path, number: usize) -> Result<Option<PathBuf>> {
        let Self { log, control, before } = self;
        let told = told(&log, before.as_ref());
        if let Some(control) = control {
            // The process may have ended; then nobody is there to be asked.
            let _ = log.set_control(control | control::WISH);
        }
        let told = told?;
        if told.head.left_out > 0 {
            note::warning(format_args!(
                "process {}: {} codes were not written to its code log for want of room (JITSCRIBE_LIMIT)",
                log.pid, told.head.left_out
            ));
        }
        if told.codes == 0 {
            return Ok(None);
        }
        let path = folder.join(format!("log-{number}"));
        fs::create_dir(&path).map_err(Error::file(&path))?;
        let path = path.join(format!("jit-{}.dump", log.pid));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(&told.bytes)).map_err(Error::file(&path))?;
        Ok(Some(path))
    }
}

fn told(log: &Log, earlier: Option<&Told>) -> Result<Told> {
    let memory = Memory::of(log.pid).ok();
    let memory = memory.as_ref().map(|memory| memory as &dyn CodeBytes);
    let beside = Beside { memory, until: log.until(), earlier };
    dump_of(log, beside).map_err(Error::format(&log.place))
}
