//! Passes long output to a pager, as git does.

use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;

/// The environment variables that name the pager, the first one first.
const VARIABLES: [&str; 2] = ["JITSCRIBE_PAGER", "PAGER"];
/// Used if none of them is set.
const DEFAULT: &str = "less";
/// Options of less, unless the user has chosen some: end if all fits on a screen, pass colours, and leave the text on the screen.
const LESS: &str = "FRX";

/// A running pager. Dropping it waits until the user has left it.
#[derive(Debug)]
pub struct Pager(Child);

impl Drop for Pager {
    fn drop(&mut self) {
        // It has the terminal until it ends. How it ends is the user's affair.
        let _ = self.0.wait();
    }
}

/// Starts the pager. `None` if the user wants none, or it cannot be started.
pub fn start() -> Option<(ChildStdin, Pager)> {
    let command = command(|name| std::env::var(name).ok())?;
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        shell.env("LESS", LESS);
    }
    let mut child = shell.spawn().ok()?;
    let input = child.stdin.take()?;
    // Ctrl-C is for the pager. A shell that cannot find the pager closes its input, which ends the output.
    let _ = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    Some((input, Pager(child)))
}

/// The command that starts the pager; `None` if there shall be none.
fn command(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let command = VARIABLES.iter().find_map(|name| variable(name));
    let command = command.unwrap_or_else(|| DEFAULT.to_owned());
    let is_none = command.trim().is_empty() || command.trim() == "cat";
    (!is_none).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_pager() {
        let of = |set: &[(&str, &str)]| {
            command(|name| {
                set.iter().find(|(there, _)| *there == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]).as_deref(), Some("less"));
        assert_eq!(of(&[("PAGER", "more -s")]).as_deref(), Some("more -s"));
        let both = [("PAGER", "more"), ("JITSCRIBE_PAGER", "bat -p")];
        assert_eq!(of(&both).as_deref(), Some("bat -p"));
        assert_eq!(of(&[("PAGER", "cat")]), None);
        assert_eq!(of(&[("PAGER", "more"), ("JITSCRIBE_PAGER", "")]), None);
    }
}
