//! How call stacks are recorded if the user does not say: as the runtime's frames allow.

use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::java_agent;
use crate::runtimes::Runtime;

/// The value of `--call-graph` by which perf copies stacks, and unwinds them later.
pub const DWARF: &str = "dwarf";

/// The number of samples a second on each processor, if stacks are copied because we chose so.
const COPIES_A_SECOND: usize = 499;
/// So many bytes of copies may be written in a second while all processors are busy.
const BYTES_A_SECOND: usize = 10_000_000;
/// The sizes of copies that are chosen, in bytes. Smaller ones lack the callers of most runtimes' functions, and few stacks need more.
const SIZES: RangeInclusive<usize> = 8192..=16384;
/// Copies of stacks that are deep, of one thread at a time: as many bytes a second. perf takes less than 64 KiB.
const DEEP_COPIES_A_SECOND: usize = 149;
const DEEP_SIZE: usize = 65_528;

/// How to record call stacks, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value for perf's `--call-graph`.
    pub value: String,
    /// The value for perf's `-F`; `None` for perf's default.
    pub frequency: Option<String>,
    /// The reason, for the user.
    pub reason: String,
}

impl Choice {
    /// By the frame pointers of functions.
    fn frame_pointers(reason: impl Into<String>) -> Self {
        Self { value: "fp".into(), frequency: None, reason: reason.into() }
    }

    /// By copies, of which perf is to write few.
    pub fn copies(reason: impl Into<String>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::copies_of(size_of_copies(processors), COPIES_A_SECOND, reason)
    }

    /// By copies of deep stacks, of a runtime that runs one thread at a time: fewer and larger ones.
    fn deep_copies(reason: impl Into<String>) -> Self {
        Self::copies_of(DEEP_SIZE, DEEP_COPIES_A_SECOND, reason)
    }

    fn copies_of(bytes: usize, a_second: usize, reason: impl Into<String>) -> Self {
        Self {
            value: format!("{DWARF},{bytes}"),
            frequency: Some(a_second.to_string()),
            reason: reason.into(),
        }
    }

    /// Whether stacks are copied.
    pub fn is_of_copies(&self) -> bool {
        self.value.starts_with(DWARF)
    }

    /// What is chosen, as perf's options.
    pub fn options(&self) -> String {
        let frequency = self.frequency.as_ref().map(|frequency| format!(" -F {frequency}"));
        format!("--call-graph {}{}", self.value, frequency.unwrap_or_default())
    }
}

/// The size of the copies if so many processors are recorded.
fn size_of_copies(processors: usize) -> usize {
    let samples = COPIES_A_SECOND.saturating_mul(processors.max(1));
    (BYTES_A_SECOND / samples / 1024 * 1024).clamp(*SIZES.start(), *SIZES.end())
}

/// Defines `python_facts()` in Python, which returns what [`of_python`] takes.
pub const PYTHON_FACTS: &str = include_str!("python_facts.py");

/// Whether perf's own options, which come after ours, say how to record stacks.
pub fn is_chosen(options: &[OsString]) -> bool {
    let says = |option: &OsString| {
        let option = option.as_bytes();
        option.starts_with(b"-g") || option.starts_with(b"--call-graph")
    };
    options.iter().any(says)
}

/// Whether perf's own options say how often to sample.
pub fn is_rate_chosen(options: &[OsString]) -> bool {
    let says = |option: &OsString| {
        let option = option.as_bytes();
        ["-F", "-c", "--freq", "--count"].iter().any(|one| option.starts_with(one.as_bytes()))
    };
    options.iter().any(says)
}

/// The choice for a command of this runtime; `None` if the runtime gives no reason for one.
pub fn choice(runtime: &Runtime, command: &[OsString]) -> Option<Choice> {
    match runtime.name {
        "Java" => java_agent::path()
            .map(|_| Choice::copies("interpreted methods have names on copied stacks only")),
        "Rakudo" => Some(Choice::copies("MoarVM is built without frame pointers")),
        "Python" => of_python_program(command),
        _ => None,
    }
}

fn of_python_program(command: &[OsString]) -> Option<Choice> {
    let program = command.first()?;
    // Without it, Python's functions have no frames of their own.
    if std::env::var_os("PYTHONPERFSUPPORT").is_some_and(|support| support == "0") {
        return None;
    }
    // Isolated: neither the user's modules nor the environment have any effect.
    let mut ask = Command::new(program);
    ask.args(["-I", "-S", "-c", &format!("{PYTHON_FACTS}\nprint(python_facts())")]);
    ask.stdin(Stdio::null()).stderr(Stdio::null());
    of_python(OsStr::from_bytes(&ask.output().ok()?.stdout).to_str()?)
}

/// The choice for an interpreter of these facts: its version in two numbers, and whether it has frame pointers (`True`).
pub fn of_python(facts: &str) -> Option<Choice> {
    let mut words = facts.split_whitespace();
    let mut number = || words.next()?.parse().ok();
    let version: (u32, u32) = (number()?, number()?);
    let has_frame_pointers = words.next()? == "True";
    let (major, minor) = version;
    let because = |why: &str| format!("Python {major}.{minor} was built {why}");
    Some(match version {
        // It has no support for perf. What numba and other packages compile is on the stacks nevertheless.
        _ if version < (3, 12) && !has_frame_pointers => {
            Choice::copies(because("without frame pointers"))
        }
        _ if has_frame_pointers => Choice::frame_pointers(because("with frame pointers")),
        // The unwind info is in the jitdump that it then writes. Its stacks are deep, as some
        // calls go through C: of pylint's, a quarter fit in 9 KB, and four in five in 64 KB.
        _ if version >= (3, 13) => Choice::deep_copies(because("without frame pointers")),
        _ => Choice::frame_pointers(because(
            "without frame pointers and does not describe its frames: functions have names, but stacks end early; \
             Python 3.13 has whole stacks",
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_s_frames_decide() {
        let of = |facts: &str| {
            let choice = of_python(facts)?;
            Some(choice.value.split(',').next()?.to_owned())
        };
        assert_eq!(of("3 13 False\n").as_deref(), Some(DWARF));
        assert_eq!(of("3 13 True\n").as_deref(), Some("fp"));
        assert_eq!(of("3 14 False").as_deref(), Some(DWARF));
        assert_eq!(of("3 12 True").as_deref(), Some("fp"));
        assert_eq!(of("3 12 False").as_deref(), Some("fp"));
        assert!(of_python("3 12 False").expect("a choice").reason.contains("stacks end early"));
        assert_eq!(of("3 11 False").as_deref(), Some(DWARF));
        assert_eq!(of("3 11 True").as_deref(), Some("fp"));
        for other in ["", "3", "3 13", "no such option"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn copies_are_as_large_as_ten_megabytes_a_second_allow() {
        for (processors, size) in [(1, 16384), (2, 9216), (3, 8192), (64, 8192), (0, 16384)] {
            assert_eq!(size_of_copies(processors), size, "{processors}");
            // perf takes multiples of 8.
            assert_eq!(size % 8, 0);
        }
        let choice = Choice::copies("because");
        assert!(choice.options().starts_with("--call-graph dwarf,"), "{choice:?}");
        assert!(choice.options().ends_with(" -F 499"), "{choice:?}");
        let deep = DEEP_SIZE * DEEP_COPIES_A_SECOND;
        assert!((9_000_000..=BYTES_A_SECOND).contains(&deep), "{deep}");
        let python = of_python("3 13 False").expect("a choice");
        assert_eq!(python.options(), "--call-graph dwarf,65528 -F 149");
    }

    #[test]
    fn perf_s_own_options_count_as_a_choice() {
        let is_chosen = |words: &str| {
            is_chosen(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        assert!(is_chosen("-F 99 -g") && is_chosen("--call-graph=lbr"));
        assert!(!is_chosen("-F 99 --no-buffering"));
        let is_rate_chosen = |words: &str| {
            is_rate_chosen(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        assert!(is_rate_chosen("-g -F 99") && is_rate_chosen("--count=1000"));
        assert!(!is_rate_chosen("-g --no-buffering"));
    }
}
