//! gdb and lldb, as installed and of Debian 13, on the program `crowd`.

use std::process::{Command, Stdio};

use crate::tool::{cache, output, tool};

/// A debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debugger {
    /// As Debian 12 installs it: 13.1.
    Gdb,
    /// Of Debian 13, as `scripts/trixie.sh` unpacks it: 16.3.
    NewGdb,
    /// As Debian 12 installs it: 14.0.
    Lldb,
    /// Of Debian 13: 19.1.
    NewLldb,
}

impl Debugger {
    /// Runs `program` with its arguments by the debugger's commands. What both print, in the order in which they do.
    pub fn run(self, commands: &[&str], program: &[&str]) -> String {
        let mut command = match self {
            Self::Gdb | Self::Lldb => tool(if self == Self::Gdb { "gdb" } else { "lldb" }),
            Self::NewGdb => tool(cache().join("trixie/run/gdb")),
            Self::NewLldb => tool(cache().join("trixie/run/lldb")),
        };
        match self {
            Self::Gdb | Self::NewGdb => {
                command.args(["-q", "-nx", "-batch"]);
                let settings = [
                    "set breakpoint pending on",
                    "set debuginfod enabled off",
                    "set width 0",
                    "set backtrace past-main on",
                ];
                for line in settings.iter().chain(commands) {
                    command.args(["-ex", line]);
                }
                command.arg("--args");
            }
            Self::Lldb | Self::NewLldb => {
                command.args(["--no-lldbinit", "--batch"]);
                for line in commands {
                    command.args(["-o", line]);
                }
                command.arg("--");
            }
        }
        printed(command.args(program))
    }

    /// Whether it is one of gdb's versions.
    pub fn is_gdb(self) -> bool {
        matches!(self, Self::Gdb | Self::NewGdb)
    }
}

/// What a debugger and its program print, without colours and without settings of the user.
fn printed(command: &mut Command) -> String {
    command
        .env("TERM", "dumb")
        .env_remove("DEBUGINFOD_URLS")
        .env_remove("JITSCRIBE")
        .stdin(Stdio::null());
    let output = output(command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{errors}");
    text
}

/// The frames of the crowd's functions in a debugger's text, `NAME:LINE`, from the innermost to the outermost. The text is that
/// of one stack.
pub fn crowd_frames(stack: &str) -> Vec<String> {
    stack.lines().filter_map(crowd_frame).collect()
}

/// `NAME:LINE` of a frame, as both debuggers print it: `many_1 () at /src/crowd.lang:13`, and ``JIT(0x…)`many_1 at
/// crowd.lang:13:1``.
fn crowd_frame(line: &str) -> Option<String> {
    let (before, behind) = line.split_once("crowd.lang:")?;
    let before = before.strip_suffix("/src/").unwrap_or(before).strip_suffix(" at ")?;
    let before = before.strip_suffix(" ()").unwrap_or(before);
    let name = before.rsplit([' ', '`']).next()?;
    let number: String = behind.chars().take_while(char::is_ascii_digit).collect();
    name.starts_with("many_").then(|| format!("{name}:{number}"))
}

#[cfg(test)]
mod tests {
    use super::crowd_frames;

    #[test]
    fn frames_of_both_debuggers_are_read() {
        let text = "\
#0  stop_here (truth=0x5555 \"many_1:13\") at tests/src/bin/crowd.rs:30
#1  0x00007ffff7fbc159 in many_5 () at /src/crowd.lang:53
* thread #1, name = 'crowd'
    frame #2: 0x00007ffff7fbc1d9 JIT(0x5555556b6cd0)`many_7 at crowd.lang:73:1
    frame #3: 0x00007ffff7fbc1d9 JIT(0x5555556b6cd0)`many_7 + 4";
        assert_eq!(crowd_frames(text), ["many_5:53", "many_7:73"]);
    }
}
