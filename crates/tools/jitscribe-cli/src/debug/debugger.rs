//! The command line of a debugger, with the script that shows it code.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use printable::Hexadecimal;

use crate::files::{Kind, Named};
use crate::{Error, Result, bridge, child, companion, note, text};

/// The reader, for a gdb without Python.
const READER: &str = "libjitscribe_gdb.so";

/// A kind of debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebuggerKind {
    Gdb,
    Lldb,
}

impl DebuggerKind {
    fn name(self) -> &'static str {
        match self {
            Self::Gdb => "gdb",
            Self::Lldb => "lldb",
        }
    }

    /// Its script.
    pub fn script(self) -> &'static str {
        match self {
            Self::Gdb => {
                concat!(
                    include_str!("server.py"),
                    include_str!("gdb.py"),
                    include_str!("gdb_unwinder.py"),
                    "\n\nstart()\n"
                )
            }
            Self::Lldb => concat!(include_str!("server.py"), include_str!("lldb.py")),
        }
    }
}

/// A debugger that is about to be started.
#[derive(Debug)]
pub struct Debugger {
    kind: DebuggerKind,
    program: PathBuf,
    command: Command,
    options: Vec<OsString>,
    has_script: bool,
    /// Options for the script's server: the files that the user named.
    sources: Vec<OsString>,
}

impl Debugger {
    /// With its script, and the user's options.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn new(kind: DebuggerKind, program: Option<&Path>, options: &[OsString]) -> Result<Self> {
        let program = program.unwrap_or(Path::new(kind.name())).to_owned();
        let command = Command::new(&program);
        let options = options.to_owned();
        let mut debugger =
            Self { kind, program, command, options, has_script: false, sources: Vec::new() };
        debugger.has_script = debugger.has_python()?;
        if !debugger.has_script {
            note::warning(format_args!(
                "{} has no Python: only code that the process registers by itself is shown",
                text::path(&debugger.program)
            ));
        }
        Ok(debugger)
    }

    /// What it is.
    pub fn kind(&self) -> DebuggerKind {
        self.kind
    }

    /// Makes lldb read symbol files, of which the addresses are those in the process.
    pub fn add_modules(&mut self, files: &[PathBuf]) {
        for file in files {
            // The name is ours, and the folder the user's.
            let name = file.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
            for command in [
                format!("target modules add \"{name}\""),
                format!("target modules load --file \"{name}\" --slide 0"),
            ] {
                self.command.arg("-o").arg(command);
            }
        }
    }

    /// Whether a script shows it code. Otherwise, it knows what the process registers by itself.
    pub fn has_script(&self) -> bool {
        self.has_script
    }

    /// Makes the script read these files.
    ///
    /// # Errors
    /// If a path is relative and the working directory is unknown.
    pub fn with_sources(mut self, named: &[(Kind, Named)]) -> Result<Self> {
        for (kind, Named { pid, path }) in named {
            let path = std::path::absolute(path).map_err(Error::file(path))?;
            let mut value = pid.map(|pid| OsString::from(format!("{pid}="))).unwrap_or_default();
            value.push(path);
            self.sources.extend([kind.option().into(), value]);
        }
        Ok(self)
    }

    /// For a running process.
    pub fn attach(mut self, pid: u32) -> Command {
        self.add_script(None);
        self.command.arg("-p").arg(pid.to_string());
        self.command
    }

    /// For a core file, and the program that dumped it.
    pub fn core(mut self, core: &Path, program: Option<&Path>) -> Command {
        self.add_script(Some(core));
        self.command.arg("-c").arg(core);
        match self.kind {
            DebuggerKind::Gdb => self.command.args(program),
            DebuggerKind::Lldb => {
                self.command.args(program.iter().flat_map(|it| [Path::new("-f"), it]))
            }
        };
        self.command
    }

    /// For a command that it runs, with this library loaded into it.
    pub fn launch(mut self, words: &[OsString], preload: Option<&Path>) -> Command {
        self.add_script(None);
        let setting = preload.map(|library| bridge::setting(&bridge::value(library)));
        // A debugger cannot start a script, so it gets the script's interpreter.
        let script = words.first().and_then(|program| bridge::script(program));
        let behind = usize::from(script.is_some());
        let (option, set, last) = match self.kind {
            DebuggerKind::Gdb => ("-iex", "set exec-wrapper env", "--args"),
            DebuggerKind::Lldb => ("-O", "settings set target.env-vars", "--"),
        };
        if let Some(setting) = setting {
            self.command.arg(option).arg(format!("{set} {setting}"));
        }
        // Without the script, all code has to be registered before it runs.
        if !self.has_script && std::env::var_os("JITSCRIBE").is_none() {
            self.command.env("JITSCRIBE", "gdb,gdb-synchronous");
        }
        self.command.arg(last).args(script.unwrap_or_default()).args(words.iter().skip(behind));
        self.command
    }

    /// What to say if it cannot be started.
    pub fn missing(program: &OsStr) -> String {
        let package =
            if text::path(program).to_string().ends_with("lldb") { "lldb" } else { "gdb" };
        format!("{} is not installed; on Debian: apt-get install {package}", text::path(program))
    }

    /// Whether it runs scripts in Python.
    fn has_python(&self) -> Result<bool> {
        let mut asked = Command::new(&self.program);
        match self.kind {
            DebuggerKind::Gdb => asked.arg("--configuration"),
            // Debian 12 has an lldb whose Python lacks the module.
            DebuggerKind::Lldb => {
                asked.args(["--no-lldbinit", "--batch", "-o", "script lldb.SBDebugger"])
            }
        };
        asked.stdin(Stdio::null()).stderr(Stdio::null());
        let output =
            asked.output().map_err(|error| not_started(self.program.as_os_str(), error))?;
        let has = |part: &[u8]| output.stdout.windows(part.len()).any(|text| text == part);
        Ok(match self.kind {
            DebuggerKind::Gdb => !has(b"--without-python"),
            DebuggerKind::Lldb => has(b"<class 'lldb.SBDebugger'>"),
        })
    }

    /// Adds the user's options and the script. The script comes last, so that it sees a hook that the user defines with `-iex`.
    fn add_script(&mut self, core: Option<&Path>) {
        if self.has_script && self.kind == DebuggerKind::Lldb && core.is_some() {
            // lldb runs no stop hook when it loads a core file.
            self.command.args(["-o", "jitscribe refresh"]);
        }
        self.command.args(&self.options);
        if !self.has_script {
            let reader = companion::library(READER).filter(|_| self.kind == DebuggerKind::Gdb);
            if let Some(reader) = reader {
                let mut load = OsString::from("jit-reader-load ");
                load.push(reader);
                self.command.arg("-iex").arg(load);
            }
            return;
        }
        // Paths are encoded, as they may contain any character.
        let word = |word: &OsStr| {
            format!("os.fsdecode(bytes.fromhex('{}'))", Hexadecimal(word.as_bytes()))
        };
        let path = |path: &Path| word(path.as_os_str());
        let own = path(&companion::own());
        let sources = self.sources.iter().map(|source| word(source)).collect::<Vec<_>>().join(", ");
        let (option, python, flag) = match self.kind {
            DebuggerKind::Gdb => ("-iex", "python", ""),
            DebuggerKind::Lldb => ("-O", "script", ", '--lldb'"),
        };
        let core = core.map_or_else(|| "None".to_owned(), path);
        let mut script = format!(
            "{python} import os, subprocess, sys, types; m = types.ModuleType('jitscribe_script'); \
             sys.modules[m.__name__] = m; m.COMMAND = {own}; m.CORE = {core}; m.SOURCES = [{sources}]; \
             exec(compile(subprocess.check_output([m.COMMAND, 'debug', '--print-script'{flag}]), m.__name__, 'exec'), \
             m.__dict__)"
        );
        if self.kind == DebuggerKind::Lldb {
            script.push_str("; import jitscribe_script; m.__lldb_init_module(lldb.debugger, {})");
        }
        self.command.arg(option).arg(script);
    }
}

/// Runs it to its end.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let missing = Debugger::missing(command.get_program());
    let status = child::run_in_foreground(command, &missing)?;
    match child::exit_code(status) {
        0 => Ok(()),
        code => Err(Error::Child(code)),
    }
}

/// Why it was not started.
pub fn not_started(program: &OsStr, error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::Refused(Debugger::missing(program));
    }
    Error::File { path: program.into(), source: error }
}
