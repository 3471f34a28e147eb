//! The code of a process that keeps a code log, as if it had written a jitdump.

use std::path::{Path, PathBuf};

use jitdump::Dump;

use super::input::Input;
use crate::process::{
    Beside, CodeBytes, Core, FolderInside, Log, Memory, Told, dump_of, inner_pid, logs_of,
};
use crate::{Error, Result, note};

/// What a running process has made so far.
pub fn of_process(pid: u32) -> Result<Input> {
    let logs = logs_of(pid)?;
    if logs.is_empty() {
        return Err(Error::Refused(format!(
            "process {pid} keeps no code log: its runtime does not link jitscribe. If it writes a jitdump or a perf \
             map, name the file instead"
        )));
    }
    let memory = Memory::of(pid)
        .inspect_err(|error| {
            note::warning(format_args!(
                "the memory of process {pid} cannot be read ({error}): code is shown without its bytes. \
                 /proc/sys/kernel/yama/ptrace_scope says who may"
            ));
        })
        .ok();
    let memory: Option<&dyn CodeBytes> = memory.as_ref().map(|memory| memory as _);
    let read = |log: &Log| {
        let beside = Beside { memory, until: log.until(), earlier: None };
        dump_of(log, beside).map_err(Error::format(&log.place))
    };
    let told = logs.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(input(largest(told), format!("process {pid}")))
}

/// What a process had made whose core file this is.
pub fn of_core(path: &Path) -> Result<Input> {
    let core = Core::open(path)?;
    let logs = core.logs();
    if logs.is_empty() {
        return Err(Error::Refused(format!(
            "{}: there is no code log in it: the runtime does not link jitscribe, or shared anonymous memory was \
             left out of the core file (bit 1 of /proc/PID/coredump_filter)",
            core.path().display()
        )));
    }
    let beside = Beside { memory: Some(&core), ..Beside::default() };
    let read = |log| dump_of(log, beside).map_err(Error::format(core.path()));
    let told = logs.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(input(largest(told), path.display().to_string()))
}

/// Where perf looks for the map of a process: in `/tmp` of its file system, by the id it has for itself.
pub struct MapPlace {
    folder: FolderInside,
    name: String,
    /// The path by which a user finds it.
    pub called: PathBuf,
}

impl MapPlace {
    pub fn of(pid: u32) -> Result<Self> {
        let name = format!("perf-{}.map", inner_pid(pid).unwrap_or(pid));
        let called = PathBuf::from(format!("/proc/{pid}/root/tmp")).join(&name);
        let folder = FolderInside::open(pid, Path::new("/tmp")).map_err(Error::file(&called))?;
        Ok(Self { folder, name, called })
    }

    /// By which we reach it, for as long as this is there.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

/// Two copies of the library in a process keep a log each; most often all but one are of no use.
fn largest(told: Vec<Told>) -> Option<Told> {
    let others = told.len().saturating_sub(1);
    let largest = told.into_iter().max_by_key(|told| told.codes);
    if others > 0 {
        note::warning(format_args!(
            "{others} more code logs are there; this is the one with the most codes"
        ));
    }
    largest
}

fn input(told: Option<Told>, name: String) -> Input {
    let Some(told) = told else { return Input::made(name, Vec::new()) };
    if told.torn > 0 {
        note::warning(format_args!(
            "{name}: {} chunks of the code log could not be read",
            told.torn
        ));
    }
    if told.without_bytes > 0 {
        note::say(format_args!(
            "{name}: {} codes, {} alive; {} have no bytes (dead, or out of reach)",
            told.codes, told.alive, told.without_bytes
        ));
    } else {
        note::say(format_args!("{name}: {} codes, {} alive", told.codes, told.alive));
    }
    Input::made(name, told.bytes)
}

/// Says how many codes are missing, where what is made of the dump does not say so itself.
pub fn warn_of_left_out(dump: &Dump<'_>, input: &Input) {
    let mut codes = dump.codes();
    codes.by_ref().for_each(drop);
    let count = codes.left_out().count;
    if count > 0 {
        note::warning(input.told(format_args!(
            "{count} codes were not written for want of room: JITSCRIBE_LIMIT sets another limit"
        )));
    }
}
