//! What can be asked of the processes that are to be recorded.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, access};

use crate::{Error, Result, note};

/// Finds the program of a command as the shell would, or says with the shell's exit code that it
/// cannot be run: perf's own word would come after it has begun to record.
pub fn check_program(program: &OsStr) -> Result<()> {
    let refused = |cause: &str, code| {
        note::error(&format_args!("{}: {cause}", Path::new(program).display()));
        Err(Error::Child(code))
    };
    let candidates: Vec<PathBuf> = if program.as_encoded_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
    };
    let mut there = candidates.iter().filter(|path| path.is_file()).peekable();
    if there.peek().is_none() {
        return refused("command not found", 127);
    }
    if there.any(|path| access(path, Access::EXEC_OK).is_ok()) {
        Ok(())
    } else {
        refused("permission denied", 126)
    }
}

/// The processes that `-p` names.
pub fn processes(list: &str) -> Result<Vec<u32>> {
    list.split(',')
        .map(|word| {
            let pid = word.trim().parse().ok().filter(|&pid: &u32| pid != 0);
            let pid =
                pid.ok_or_else(|| Error::Usage(format!("-p {list}: {word} is no process id")))?;
            if Path::new("/proc").join(pid.to_string()).exists() {
                Ok(pid)
            } else {
                Err(Error::Refused(format!("there is no process {pid}")))
            }
        })
        .collect()
}

/// Asks those of the processes that run Java for a perf map. They write none by themselves, and one
/// tells only of the methods that are compiled when it is written.
pub fn ask_java_for_maps(pids: &[u32]) {
    for &pid in pids.iter().filter(|&&pid| is_java(pid)) {
        match java_map(pid) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => note::warning(format_args!(
                "process {pid} is Java, and there is no jcmd here to ask it for a perf map; it \
                 comes with the JDK. By hand: jcmd {pid} Compiler.perfmap, then jitscribe inject"
            )),
            Err(error) => note::warning(format_args!(
                "process {pid} is Java, and gave no perf map: jcmd {pid} Compiler.perfmap: {error}"
            )),
        }
    }
}

fn is_java(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().any(|line| line.ends_with("/libjvm.so"))
}

fn java_map(pid: u32) -> io::Result<()> {
    let mut jcmd = Command::new("jcmd");
    jcmd.arg(pid.to_string()).arg("Compiler.perfmap").stdin(Stdio::null());
    let owner = fs::metadata(format!("/proc/{pid}"))?;
    let us = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // Java answers its own user.
    if us != (owner.uid(), owner.gid()) && us.0 == 0 {
        jcmd.uid(owner.uid()).gid(owner.gid());
    }
    let done = jcmd.output()?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stderr, done.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let cause = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it failed");
    Err(io::Error::other(cause.to_owned()))
}
