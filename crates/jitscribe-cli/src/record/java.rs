//! Running JVMs: they are asked by `jcmd` to load the agent, which goes on to announce what they compile until it is told
//! that the recording is over; or, where that cannot be, for a perf map.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{java_agent, note};

/// The JVMs among the processes that are recorded.
#[derive(Debug)]
pub struct Jvms {
    /// Those that announce while this is there.
    held: Vec<u32>,
    /// Those that are asked for maps.
    mapped: Vec<u32>,
}

impl Jvms {
    /// Has the JVMs among these processes tell of their code. With `ask`, they may be given the agent.
    pub fn ask(pids: &[u32], ask: bool) -> Self {
        let agent = java_agent::path().filter(|_| ask);
        let (mut held, mut mapped) = (Vec::new(), Vec::new());
        for &pid in pids.iter().filter(|&&pid| is_java(pid)) {
            match agent.as_deref().map(|agent| load(pid, agent, "hold")) {
                Some(Ok(())) => held.push(pid),
                Some(Err(error)) => {
                    note::warning(format_args!(
                        "process {pid} is Java, and does not load the agent: {error}. It is asked for a perf map, \
                         which has neither lines nor inlined calls, and no methods that are gone"
                    ));
                    mapped.push(pid);
                }
                None => mapped.push(pid),
            }
        }
        let jvms = Self { held, mapped };
        jvms.ask_for_maps();
        jvms
    }

    /// The recording is over. JVMs that still run tell of what they compiled meanwhile.
    pub fn finish(self) {
        self.ask_for_maps();
    }

    /// They write none by themselves, and one tells only of the methods that are compiled when it is written.
    fn ask_for_maps(&self) {
        for &pid in &self.mapped {
            match jcmd(pid, &["Compiler.perfmap"]) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    note::warning(format_args!(
                        "process {pid} is Java, and there is no jcmd here to ask it for a perf map; it comes with the \
                         JDK. By hand: jcmd {pid} Compiler.perfmap, then jitscribe inject"
                    ));
                }
                Err(error) => note::warning(format_args!(
                    "process {pid} is Java, and gave no perf map: jcmd {pid} Compiler.perfmap: {error}"
                )),
            }
        }
    }
}

impl Drop for Jvms {
    fn drop(&mut self) {
        for &pid in &self.held {
            // It may have ended.
            if let Some(agent) = java_agent::path().filter(|_| is_java(pid)) {
                let _ = load(pid, &agent, "release");
            }
        }
    }
}

fn is_java(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().any(|line| line.ends_with("/libjvm.so"))
}

/// Has a JVM load the agent, or, if it has it, give it an option.
fn load(pid: u32, agent: &Path, option: &str) -> io::Result<()> {
    let agent = agent.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
    // It may live in another file system.
    if !Path::new(&format!("/proc/{pid}/root{agent}")).exists() {
        return Err(io::Error::other(format!("there is no {agent} where it runs")));
    }
    let said = jcmd(pid, &["JVMTI.agent_load", agent, option])?;
    if said.lines().any(|line| line.trim() == "return code: 0") {
        return Ok(());
    }
    // The first line is the process.
    let cause = said.lines().nth(1).unwrap_or("it said nothing");
    Err(io::Error::other(cause.to_owned()))
}

/// What a JVM answers to a command.
fn jcmd(pid: u32, words: &[&str]) -> io::Result<String> {
    let mut jcmd = Command::new("jcmd");
    jcmd.arg(pid.to_string()).args(words).stdin(Stdio::null());
    let owner = fs::metadata(format!("/proc/{pid}"))?;
    let us = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // Java answers its own user.
    if us != (owner.uid(), owner.gid()) && us.0 == 0 {
        jcmd.uid(owner.uid()).gid(owner.gid());
    }
    let done = jcmd.output()?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = [done.stderr, done.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let cause = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it failed");
    Err(io::Error::other(cause.to_owned()))
}
