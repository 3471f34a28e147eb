//! How call stacks are recorded if the user does not say: as the runtime's frames allow.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::runtimes::Runtime;

/// The value of `--call-graph` by which perf copies stacks, and unwinds them later.
pub const DWARF: &str = "dwarf";

/// A value for perf's `--call-graph`, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value.
    pub value: &'static str,
    /// The reason, for the user.
    pub reason: String,
}

/// Prints the version of an interpreter, and whether it was compiled with frame pointers.
const PYTHON_FACTS: &str = "import sys, sysconfig
of = sysconfig.get_config_vars()
flags = ' '.join(str(of.get(name)) for name in ('CONFIGURE_CFLAGS', 'CFLAGS', 'PY_CORE_CFLAGS'))
print(*sys.version_info[:2], '-fno-omit-frame-pointer' in flags)";

/// Whether perf's own options, which come after ours, say how to record stacks.
pub fn is_chosen(options: &[OsString]) -> bool {
    let says = |option: &OsString| {
        let option = option.as_bytes();
        option.starts_with(b"-g") || option.starts_with(b"--call-graph")
    };
    options.iter().any(says)
}

/// The choice for a command of this runtime; `None` if the runtime gives no reason for one.
pub fn choice(runtime: &Runtime, command: &[OsString]) -> Option<Choice> {
    let program = command.first().filter(|_| runtime.name == "Python")?;
    // Without it, Python's functions have no frames of their own.
    if std::env::var_os("PYTHONPERFSUPPORT").is_some_and(|support| support == "0") {
        return None;
    }
    // Isolated: neither the user's modules nor the environment have any effect.
    let mut ask = Command::new(program);
    ask.args(["-I", "-S", "-c", PYTHON_FACTS]).stdin(Stdio::null()).stderr(Stdio::null());
    of_python(OsStr::from_bytes(&ask.output().ok()?.stdout).to_str()?)
}

fn of_python(facts: &str) -> Option<Choice> {
    let mut words = facts.split_whitespace();
    let mut number = || words.next()?.parse().ok();
    let version: (u32, u32) = (number()?, number()?);
    let has_frame_pointers = words.next()? == "True";
    let (value, why) = match version {
        // It has no support for perf.
        _ if version < (3, 12) => return None,
        _ if has_frame_pointers => ("fp", "was built with frame pointers"),
        // The unwind info is in the jitdump that it then writes.
        _ if version >= (3, 13) => (DWARF, "was built without frame pointers"),
        _ => (
            "fp",
            "was built without frame pointers and does not describe its frames: functions have names, but stacks \
             end early; Python 3.13 has whole stacks",
        ),
    };
    let (major, minor) = version;
    Some(Choice { value, reason: format!("Python {major}.{minor} {why}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_s_frames_decide() {
        let of = |facts: &str| of_python(facts).map(|choice| choice.value);
        assert_eq!(of("3 13 False\n"), Some(DWARF));
        assert_eq!(of("3 13 True\n"), Some("fp"));
        assert_eq!(of("3 14 False"), Some(DWARF));
        assert_eq!(of("3 12 True"), Some("fp"));
        assert_eq!(of("3 12 False"), Some("fp"));
        assert!(of_python("3 12 False").expect("a choice").reason.contains("stacks end early"));
        for other in ["3 11 True", "2 7 False", "", "3", "3 13", "no such option"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn perf_s_own_options_count_as_a_choice() {
        let is_chosen = |words: &str| {
            is_chosen(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        assert!(is_chosen("-F 99 -g") && is_chosen("--call-graph=lbr"));
        assert!(!is_chosen("-F 99 --no-buffering"));
    }
}
