//! Reads the code of a process or core file: its code log, as a jitdump, or what else the process of a core file has written.

use std::io;
use std::path::{Path, PathBuf};

use jitdump::Dump;
use rustix::process::geteuid;
use rustix::time::ClockId;

use super::input::Input;
use crate::core_sources::{self, CoreSources, Unused};
use crate::files::{FoundSource, Kind};
use crate::foreign::Patience;
use crate::process::{
    Core, CoreLog, DumpContext, Log, LogDump, RegisteredCode, RegisteredInCore, RegistrationTimes,
    SearchedFiles, dump_of, inner_pid, logs_of, merge, merge_dumps, merge_registered, nanoseconds,
    read_all, write_inside,
};
use crate::record::found_text;
use crate::{Error, Result, note, text};

/// The most bytes of a process's memory that are scanned for code.
const SCAN: u64 = 4 << 30;

/// The code that a running process has announced so far.
pub fn of_process(pid: u32) -> Result<Input> {
    let logs = logs_of(pid)?;
    let registered = registered_by(pid);
    if logs.is_empty() {
        return registered.map(|dump| Input::from_bytes(format!("process {pid}"), dump)).ok_or_else(|| {
            Error::Refused(format!(
                "process {pid} keeps no code log (its runtime does not link jitscribe), and has registered no code with \
                 GDB's JIT interface; nor is there code in its memory that jitscribe finds (LuaJIT's traces, PCRE2's expressions). If it writes a jitdump or a perf map, pass that file instead"
            ))
        });
    }
    if let Some(error) = logs.iter().find_map(Log::memory_error) {
        note::warning(format_args!(
            "cannot read the memory of process {pid} ({error}): code is shown without bytes. \
             /proc/sys/kernel/yama/ptrace_scope controls who may read it"
        ));
    }
    let all: Vec<_> = logs.iter().map(|log| (log, None)).collect();
    let mut dumps = Vec::new();
    read_all(&all, Patience::NAMED, |number, done| dumps.push((number, done)));
    dumps.sort_by_key(|(number, _)| *number);
    if logs.iter().any(Log::is_memory_unresponsive) {
        note::warning(format_args!(
            "reading the memory of process {pid} timed out: code is shown without bytes"
        ));
    }
    let dumps = dumps.into_iter().map(|(_, done)| done).collect::<Result<Vec<_>>>()?;
    let dump = with_one_clock(dumps);
    let is_arch = dump.as_ref().is_some_and(|dump| dump.head.arch_timestamp);
    let input = input(dump, format!("process {pid}"));
    match registered {
        Some(_) if is_arch => note::warning(
            "what is registered with GDB's JIT interface is left out: the clock of the code log is another one",
        ),
        Some(registered) => {
            if let Some(both) = merge_registered(input.bytes(), &registered) {
                return Ok(Input::from_bytes(format!("process {pid}"), both));
            }
        }
        None => {}
    }
    Ok(input)
}

/// The code that a process has registered with GDB's JIT interface, as a jitdump; `None` if there is none, or it cannot be read.
fn registered_by(pid: u32) -> Option<Vec<u8>> {
    let name = format!("process {pid}");
    let polled = RegisteredCode::begin(pid, Patience::NAMED).and_then(|mut worker| {
        let now = || RegistrationTimes { earliest: nanoseconds(ClockId::Monotonic), last: None };
        let mut files = SearchedFiles::default();
        let mut all = worker.poll(now(), SCAN, &mut files)?;
        let mut is_partial = true;
        while is_partial {
            is_partial = all.is_partial;
            let next = worker.poll(now(), SCAN, &mut files)?;
            all.add(next);
        }
        Ok(all)
    });
    let polled = match polled {
        Ok(polled) => polled,
        // What may not be read is reported with the log.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
        Err(error) => {
            note::warning(format_args!(
                "{name}: the code that is registered with GDB's JIT interface cannot be read: {error}"
            ));
            return None;
        }
    };
    say_registered(&name, polled.new, polled.found, polled.is_full);
    let dumps: Vec<&[u8]> = polled.dumps.iter().map(|(dump, _)| dump.as_slice()).collect();
    merge_dumps(&dumps)
}

/// The code that the process of a core file had announced, or had written to a jitdump or a perf map; or what the first of these files describes, if the user
/// named some.
pub fn of_core(path: &Path, named: &[FoundSource]) -> Result<Input> {
    let core = Core::open(path)?;
    if !named.is_empty() {
        return of_named(&core, named);
    }
    let logs = core.logs();
    let registered = registered_in(&core);
    if logs.is_empty() {
        return of_files(&core).or_else(|error| match registered {
            Some(dump) => Ok(Input::from_bytes(text::path(path).to_string(), dump)),
            None => Err(error),
        });
    }
    let read = |log: &CoreLog<'_>| {
        let context =
            DumpContext { memory: Some(&core), until: log.until(), ..DumpContext::default() };
        dump_of(log, context).map_err(Error::format(core.path()))
    };
    let dumps = logs.iter().map(read).collect::<Result<Vec<_>>>()?;
    let input = input(with_one_clock(dumps), text::path(path).to_string());
    let both = registered.and_then(|registered| merge_registered(input.bytes(), &registered));
    Ok(both.map_or(input, |both| Input::from_bytes(text::path(path).to_string(), both)))
}

/// The code that the process of a core file had registered with GDB's JIT interface, as a jitdump; `None` if there is none.
fn registered_in(core: &Core) -> Option<Vec<u8>> {
    let found = RegisteredInCore::of(core)?;
    say_registered(&text::path(core.path()).to_string(), found.codes, found.found, found.is_full);
    Some(found.dump)
}

/// Says what was read of the lists of a process.
fn say_registered(name: &str, codes: u64, found: u64, is_full: bool) {
    if is_full {
        note::warning(format_args!(
            "{name}: more code is registered with GDB's JIT interface than is read; the rest is skipped"
        ));
    }
    if codes > found {
        let codes = codes - found;
        note::say(format_args!("{name}: {codes} codes are registered with GDB's JIT interface"));
    }
    if found > 0 {
        note::say(found_text(found, name));
    }
}

/// The first of the files that has code. One that seems to be of another process is read too, as the user named it.
fn of_named(core: &Core, named: &[FoundSource]) -> Result<Input> {
    let mut empty = Vec::new();
    for file in named {
        let input = Input::of_found(file)?.translated();
        if !input.has_code() {
            empty.push(format!("{} ({})", text::path(&file.path), Unused::Empty));
            continue;
        }
        if let Some(why) = core_sources::doubt(core, file) {
            note::warning(input.message(format_args!(
                "{why}: it may not describe the process of {}",
                text::path(core.path())
            )));
        }
        return Ok(input);
    }
    Err(Error::Refused(format!("{}: {}", text::path(core.path()), empty.join(", "))))
}

/// A file in which the process of a core file described its code.
fn of_files(core: &Core) -> Result<Input> {
    let sources = CoreSources::of(core, &[Kind::Jitdump, Kind::PerfMap]);
    let mut failures = Vec::new();
    for file in &sources.found {
        match Input::of_found(file) {
            // V8 writes through a buffer: of a short run, the dump has only a header.
            Ok(input) if input.has_code() => {
                let path = text::path(&file.path);
                note::say(format_args!("{}: no code log; reading {path}", text::path(core.path())));
                return Ok(input);
            }
            Ok(_) => failures.push(format!("{} ({})", text::path(&file.path), Unused::Empty)),
            Err(error) => failures.push(error.to_string()),
        }
    }
    failures.extend(sources.unused_text());
    let files = if failures.is_empty() { "none".to_owned() } else { failures.join(", ") };
    Err(Error::Refused(format!(
        "{}: no code log found: the runtime does not link jitscribe, or the core file lacks shared anonymous memory (bit 1 of \
         /proc/PID/coredump_filter). Other files looked for: {files}. If the process wrote a jitdump or a perf map, --from-jitdump \
         FILE or --from-perf-map FILE names it",
        text::path(core.path())
    )))
}

/// Writes the perf map of a process where perf looks for it: in `/tmp` of the process's file system, under its own pid.
pub fn write_map(pid: u32, map: &[u8], force: bool) -> Result<()> {
    let path = format!("/tmp/perf-{}.map", inner_pid(pid).unwrap_or(pid));
    let called = PathBuf::from(format!("/proc/{pid}/root{path}"));
    let user = match write_inside(pid, path.as_ref(), map, force) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(jitscribe_inject::Error::Exists { path: called }.into());
        }
        done => done.map_err(Error::file(&called))?,
    };
    note::say(format_args!("{}: {} bytes", text::path(&called), map.len()));
    if user != geteuid().as_raw() && user != 0 {
        note::say(format_args!(
            "the file belongs to uid {user}, like the process: as another user, run perf with -f"
        ));
    }
    Ok(())
}

/// Merges all logs of a process into one dump: two copies of the library keep one log each.
fn with_one_clock(mut dumps: Vec<LogDump>) -> Option<LogDump> {
    let largest = dumps.iter().max_by_key(|dump| dump.codes)?.head.arch_timestamp;
    let found = dumps.len();
    dumps.retain(|dump| dump.head.arch_timestamp == largest);
    if dumps.len() < found {
        note::warning(format_args!(
            "skipped {} more code logs: their clock differs from that of the log with the most codes",
            found - dumps.len()
        ));
    }
    merge(dumps)
}

fn input(dump: Option<LogDump>, name: String) -> Input {
    let Some(dump) = dump else { return Input::from_bytes(name, Vec::new()) };
    if dump.torn > 0 {
        note::warning(format_args!(
            "{name}: {} chunks of the code log could not be read",
            dump.torn
        ));
    }
    if dump.is_cut {
        note::warning(format_args!(
            "{name}: the code log exceeds the limit; the rest of its codes is skipped"
        ));
    }
    if dump.over_budget > 0 {
        note::warning(format_args!(
            "{name}: the code exceeds the limit of bytes read from memory; {} codes are shown without bytes",
            dump.over_budget
        ));
    }
    if dump.without_bytes > 0 {
        note::say(format_args!(
            "{name}: {} codes, {} alive; {} without bytes (dead or unreadable)",
            dump.codes, dump.alive, dump.without_bytes
        ));
    } else {
        note::say(format_args!("{name}: {} codes, {} alive", dump.codes, dump.alive));
    }
    Input::from_bytes(name, dump.bytes)
}

/// Reports how many codes are missing, for outputs that do not contain this number.
pub fn warn_of_left_out(dump: &Dump<'_>, input: &Input) {
    let mut codes = dump.codes();
    codes.by_ref().for_each(drop);
    let count = codes.left_out().count;
    if count > 0 {
        note::warning(input.message(format_args!(
            "{count} codes are missing because the log was full; JITSCRIBE_LIMIT sets the limit"
        )));
    }
}
