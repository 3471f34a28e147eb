//! Python 3.14 and later: CPython runs a script that a debugger asks for (PEP 768). It has it call its functions through trampolines, as `-X perf` does, and stop with that when the
//! recording ends.
//!
//! The request is written into the state of its main thread ([`runtime`]), which takes it the next time that it may be interrupted.

mod runtime;

use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags, fstat, openat};
use serde::{Deserialize, Serialize};

use self::runtime::{Requests, Without};
use crate::foreign::Owner;
use crate::process::Mapping;
use crate::record::agent::{
    Failure, Folder, Maps, OfferedPipe, PAUSE, Root, SessionPipe, Target, Wait, plain,
};
use crate::record::call_graph::PYTHON_FACTS;

/// What a process runs, up to the arguments.
const SCRIPT: &str = include_str!("script.py");

/// The most bytes that are searched for the state of CPython. An interpreter with libraries has some megabytes of writable data.
const LARGEST: u64 = 64 << 20;
/// The most parts of memory that are searched.
const PARTS: usize = 1 << 12;
/// The longest answer.
const ANSWER: usize = 4096;
/// The bit that has the interpreter look for requests (`_PY_EVAL_PLEASE_STOP_BIT`).
const PLEASE_STOP: u8 = 1 << 5;

/// What was found and done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It calls functions through trampolines now. These are its version and whether it has frame pointers, as [`call_graph`](crate::record::call_graph) takes them.
    On(String),
    /// Something else had turned trampolines on, and it stays so.
    WasOn,
    /// They were on before, and are off: CPython would not survive to turn them on again.
    Used,
    /// It was not asked, or did not succeed.
    Failed(String),
}

/// Has CPython run the script. `None` if it is not CPython.
pub fn load(
    target: &Target,
    root: &Root,
    wait: &Wait<'_>,
) -> Result<Option<(Outcome, Option<SessionPipe>)>, Failure> {
    let parts = writable_data(target, wait)?;
    let memory = target.memory().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::Refused(
            "its memory may not be written, which is how Python is asked (kernel.yama.ptrace_scope?): run this as root".into(),
        ),
        _ => error.into(),
    })?;
    if !target.has_same_owner()? {
        return Ok(None);
    }
    let requests = match runtime::requests(&memory, parts, LARGEST) {
        Ok(requests) => requests,
        Err(Without::Cookie) => return Ok(None),
        Err(why) => return Ok(Some((Outcome::Failed(why.to_string()), None))),
    };
    Owner { user: target.user, group: target.group }.become_this()?;
    let folder = Folder::new(root.open("/tmp", OFlags::DIRECTORY)?);
    let pipe = OfferedPipe::make(&folder, target.pid)?;
    let name = format!("{}.py", pipe.name());
    let mut script = None;
    let name = folder.make(name, |folder, name| {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        script = Some(File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?));
        Ok(())
    })?;
    let Some(script) = script else { return Err(io::Error::from(io::ErrorKind::NotFound).into()) };
    let path = format!("/tmp/{}", name.as_str());
    script.write_all_at(text(&pipe.path(), &path).as_bytes(), 0)?;
    write(&memory, requests, &path)?;
    match answer(&script, wait) {
        Ok(answer) => {
            let outcome = parsed(&answer);
            let session = matches!(outcome, Outcome::On(_)).then(|| pipe.taken());
            Ok(Some((outcome, session)))
        }
        Err(failure) => {
            // Otherwise it would look for the script when it runs again.
            let _ = memory.write_all_at(&0_u32.to_ne_bytes(), requests.pending);
            let waits = "its main thread waits, and takes a request only when it runs again";
            match failure {
                Failure::NotAnswering => Ok(Some((Outcome::Failed(waits.into()), None))),
                failure => Err(failure),
            }
        }
    }
}

fn text(pipe: &str, own: &str) -> String {
    // A string of JSON is one of Python.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!("{PYTHON_FACTS}{SCRIPT}\njitscribe({}, {})\n", quoted(pipe), quoted(own))
}

/// The parts of memory that a file is mapped in, and that are writable: where an interpreter or a library has its data.
fn writable_data(target: &Target, wait: &Wait<'_>) -> Result<Vec<Range<u64>>, Failure> {
    let mut parts = Vec::new();
    Maps::of(target)?.each(wait, |line| {
        let mapping = Mapping::parse(line.line());
        let data = mapping.filter(|it| it.is_writable && !it.is_shared && it.inode != 0);
        parts.extend(data.map(|mapping| mapping.range));
        if parts.len() < PARTS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(parts)
}

/// Writes the request, in the order of the protocol.
fn write(memory: &File, requests: Requests, path: &str) -> Result<(), Failure> {
    let mut bytes = path.as_bytes().to_vec();
    bytes.push(0);
    if bytes.len() as u64 > requests.space {
        return Err(Failure::Refused("it has no space for the path of a script".into()));
    }
    memory.write_all_at(&bytes, requests.path)?;
    memory.write_all_at(&1_u32.to_ne_bytes(), requests.pending)?;
    // The interpreter sets other bits at any time. The lowest byte has few of them.
    let mut bits = [0];
    memory.read_exact_at(&mut bits, requests.breaker)?;
    let [bits] = bits;
    Ok(memory.write_all_at(&[bits | PLEASE_STOP], requests.breaker)?)
}

/// Waits until the script was removed, or has a failure in it, and returns what is in it.
fn answer(script: &File, wait: &Wait<'_>) -> Result<Vec<u8>, Failure> {
    loop {
        let is_removed = fstat(script.as_fd())?.st_nlink == 0;
        let mut answer = vec![0; ANSWER];
        let size = script.read_at(&mut answer, 0)?;
        answer.truncate(size);
        if is_removed || answer.starts_with(b"!") {
            return Ok(answer);
        }
        wait.pause(PAUSE)?;
    }
}

fn parsed(answer: &[u8]) -> Outcome {
    let answer = String::from_utf8_lossy(answer);
    match answer.strip_prefix('!') {
        Some(why) => Outcome::Failed(plain(why)),
        None if answer == "on" => Outcome::WasOn,
        None if answer == "used" => Outcome::Used,
        None => Outcome::On(plain(&answer)),
    }
}

impl std::fmt::Display for Without {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cookie => f.write_str("it is not CPython"),
            Self::Version(minor) if *minor < 14 => {
                write!(f, "it is Python 3.{minor}, and only Python 3.14 and later can be asked")
            }
            Self::Version(minor) => write!(f, "Python 3.{minor} is not known yet"),
            Self::Disabled => f.write_str(
                "it does not accept requests (-X disable-remote-debug or PYTHON_DISABLE_REMOTE_DEBUG)",
            ),
            Self::Thread => f.write_str("it is starting or ending"),
        }
    }
}
