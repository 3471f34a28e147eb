//! The code logs of processes that run already: held open while perf records, read before and after.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jitdump::extension::control;

use crate::files::Named;
use crate::process::{Beside, CodeBytes, Log, Memory, Told, dump_of, logs_of, processes};
use crate::{Error, Result, note};

/// The logs of the processes that are being recorded.
#[derive(Debug, Default)]
pub struct Logs(Vec<Watched>);

#[derive(Debug)]
struct Watched {
    log: Log,
    /// What its control word was, if we changed it.
    control: Option<u32>,
    /// What it told before the recording: code that dies meanwhile may be gone from it afterwards.
    before: Option<Told>,
}

impl Logs {
    /// Opens the logs of `pids`, or of all processes if there are none. With `ask`, the processes are asked to
    /// keep the bytes of what they announce from now on, and to announce if they do not.
    pub fn open(pids: &[u32], ask: bool) -> Self {
        let everyone = pids.is_empty();
        let pids = if everyone { processes() } else { pids.to_vec() };
        let mut logs = Vec::new();
        for pid in pids {
            match logs_of(pid) {
                // perf sees dumps that are files by their markers.
                Ok(found) => logs.extend(found.into_iter().filter(|log| !log.is_dump())),
                Err(error) if !everyone => note::warning(error),
                Err(_) => {}
            }
        }
        Self(logs.into_iter().map(|log| Watched::new(log, ask)).collect())
    }

    /// Writes what the logs tell into `folder`, and gives their processes back as they were. Returns the
    /// dumps, and whose they are.
    pub fn collect(self, folder: &Path) -> Vec<Named> {
        let mut dumps = Vec::new();
        for (number, watched) in self.0.into_iter().enumerate() {
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
