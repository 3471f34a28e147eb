//! Recordings of running processes for a short time, again and again.
//!
//! Each window is a recording by `jitscribe record`, in a process of its own: what a recorded process offers is read there, as in any
//! recording, and an interrupt ends only the window. What processes were asked for stays in force from window to window.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;

use crate::record::Held;
use crate::{Error, Result, companion, descriptors, exit_code};

/// How often a window that is being recorded is looked at.
pub const TICK: Duration = Duration::from_millis(50);
/// Of what `record` says of a window, no more bytes are kept.
const LONGEST_MESSAGES: u64 = 1 << 16;

/// What is recorded, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct WindowArgs {
    /// These processes, and the children that they start
    #[arg(
        short,
        long,
        value_name = "PID[,PID...]",
        conflicts_with = "all",
        required_unless_present = "all"
    )]
    pub pid: Option<String>,
    /// All processes
    #[arg(short, long)]
    pub all: bool,
    /// How to record call chains: fp, dwarf or dwarf,BYTES, lbr, none [default: as record]
    #[arg(long, value_name = "HOW")]
    pub call_graph: Option<String>,
    /// Do not ask processes to announce more than they do by themselves
    #[arg(long)]
    pub no_env: bool,
}

/// Windows of time, one after the other.
#[derive(Debug)]
pub struct Windows {
    held: Option<Held>,
    /// The words of the command that records one.
    words: Vec<OsString>,
    /// How to record call chains, as the user wants it.
    call_graph: Option<String>,
    /// Set when there should be no more windows.
    ends: Arc<AtomicBool>,
}

/// The recording of one window, which is removed when this is dropped.
#[derive(Debug)]
pub struct Window {
    folder: TempDir,
    /// What there is to say of JVMs that were asked, and what `record` had to say.
    pub messages: Vec<String>,
}

/// A window that is being recorded, or whose recording is being completed.
#[derive(Debug)]
pub struct RunningWindow {
    window: Window,
    child: Child,
    messages: Option<JoinHandle<Vec<String>>>,
    ends: Arc<AtomicBool>,
    is_interrupted: bool,
}

impl Window {
    /// Its perf.data.
    pub fn recording(&self) -> PathBuf {
        self.folder.path().join("perf.data")
    }
}

impl Windows {
    /// Asks the processes to announce their code. Each window lasts `seconds` and has `freq` samples a second on each processor;
    /// `options` are further ones of `record`.
    pub fn begin(args: &WindowArgs, freq: u32, seconds: &str, options: &[&str]) -> Result<Self> {
        let perf: &[&str] = if args.all { &["-a"] } else { &[] };
        let perf: Vec<OsString> = perf.iter().map(OsString::from).collect();
        let call_graph = args.call_graph.as_deref();
        let held = match args.no_env {
            true => None,
            false => Some(Held::of(args.pid.as_deref(), &perf, call_graph)?),
        };
        let mut words: Vec<OsString> = vec!["record".into(), "--allow-empty".into()];
        words.extend(options.iter().map(OsString::from));
        words.push(if held.is_some() { "--held" } else { "--no-env" }.into());
        words.extend(["-F".into(), freq.to_string().into()]);
        words.extend(["--duration".into(), seconds.into()]);
        words.extend(perf);
        if let Some(pid) = &args.pid {
            words.extend(["--pid".into(), pid.into()]);
        }
        let ends = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let set = signal_hook::flag::register(signal, Arc::clone(&ends));
            set.map_err(Error::file(companion::own()))?;
        }
        Ok(Self { held, words, call_graph: args.call_graph.clone(), ends })
    }

    /// Ends the window that is being recorded, and makes it the last one, once it is set.
    pub fn ends(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ends)
    }

    /// Records the next window. `None` if there is none: the processes have ended, or a signal came.
    pub fn next(&mut self) -> Result<Option<Window>> {
        let Some(mut running) = self.start()? else { return Ok(None) };
        loop {
            match running.status()? {
                Some(status) => return self.finish(running, status),
                None => thread::sleep(TICK),
            }
        }
    }

    /// Begins to record the next window, if there is one.
    pub fn start(&mut self) -> Result<Option<RunningWindow>> {
        if self.are_over() {
            return Ok(None);
        }
        let asked = self.held.as_mut().map(Held::ask_new).unwrap_or_default();
        let folder = tempfile::Builder::new().prefix("jitscribe-window-").tempdir();
        let folder = folder.map_err(Error::file(std::env::temp_dir()))?;
        let window = Window { folder, messages: asked };
        let mut command = Command::new(companion::own());
        command.args(&self.words).arg("--output").arg(window.recording());
        let copies = self.held.as_ref().is_some_and(Held::need_copies).then_some("dwarf");
        if let Some(how) = self.call_graph.as_deref().or(copies) {
            command.args(["--call-graph", how]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        descriptors::restore_in(&mut command);
        let mut child = command.spawn().map_err(Error::file(companion::own()))?;
        let messages = child.stderr.take().map(|stderr| {
            thread::spawn(move || {
                let mut text = Vec::new();
                // What was read is shown.
                _ = stderr.take(LONGEST_MESSAGES).read_to_end(&mut text);
                String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
            })
        });
        let ends = Arc::clone(&self.ends);
        Ok(Some(RunningWindow { window, child, messages, ends, is_interrupted: false }))
    }

    /// The recording of a window, whose process ended so. `None` if there are no more windows, and none was made of this one.
    pub fn finish(&self, running: RunningWindow, status: ExitStatus) -> Result<Option<Window>> {
        let RunningWindow { mut window, messages, .. } = running;
        let messages = messages.and_then(|lines| lines.join().ok());
        window.messages.extend(messages.unwrap_or_default());
        if window.recording().is_file() {
            return Ok(Some(window));
        }
        if self.are_over() {
            return Ok(None);
        }
        let code = status.code().unwrap_or(i32::from(exit_code::FAILED));
        let last = window.messages.last().cloned().unwrap_or_else(|| format!("exit code {code}"));
        let last = last.strip_prefix("jitscribe: error: ").map(str::to_owned).unwrap_or(last);
        Err(Error::Refused(last))
    }

    /// Whether the processes have ended, or a signal came.
    pub fn are_over(&self) -> bool {
        self.ends.load(Ordering::Relaxed) || self.held.as_ref().is_some_and(|held| !held.is_alive())
    }
}

impl RunningWindow {
    /// How its process ended; `None` if it has not. It is ended early if there is no need for it.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().map_err(Error::file(companion::own()))?;
        if status.is_none() && self.ends.load(Ordering::Relaxed) && !self.is_interrupted {
            // It may have ended just now.
            _ = kill_process(Pid::from_child(&self.child), Signal::INT);
            self.is_interrupted = true;
        }
        Ok(status)
    }
}
