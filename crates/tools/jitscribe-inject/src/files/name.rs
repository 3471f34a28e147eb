//! The names of jitdumps and perf maps, and what they reveal.

use std::path::{Path, PathBuf};

use code_index::{LOG_FORMATS, LogFormat};

/// The format of a file with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Kind {
    /// A jitdump.
    Jitdump,
    /// A perf map.
    PerfMap,
}

impl Kind {
    /// The command-line option for files of this format.
    pub fn option(self) -> &'static str {
        match self {
            Self::Jitdump => "--jitdump",
            Self::PerfMap => "--perf-map",
        }
    }
}

/// A file that the user named: `[PID=]FILE`.
#[derive(Clone, Debug)]
pub struct Named {
    /// The process it belongs to; by default taken from the file's header or name.
    pub pid: Option<u32>,
    /// The file.
    pub path: PathBuf,
}

impl std::str::FromStr for Named {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let split = text.split_once('=');
        let with_pid = split.and_then(|(pid, path)| Some((pid.parse().ok()?, path)));
        Ok(match with_pid {
            Some((pid, path)) => Self { pid: Some(pid), path: path.into() },
            None => Self { pid: None, path: text.into() },
        })
    }
}

/// Whether a mapped file has a name that JITs give to their dumps: `jit-PID.dump`, or
/// JavaScriptCore's `jit-TID-PID.dump`.
pub fn looks_like_marker(name: &[u8]) -> bool {
    let inner = base_name(name).strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    inner.is_some_and(|numbers| {
        let mut parts = numbers.split(|&byte| byte == b'-');
        parts.clone().count() <= 2
            && parts.all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    })
}

/// Whether a file has a name that jitdumps have, or logs that are opened as jitdumps if their runtimes are recorded: `pypy-PID.log`.
pub fn looks_like_dump(name: &[u8]) -> bool {
    let is_log = |format: &LogFormat| name.starts_with(format.prefix.as_bytes());
    looks_like_marker(name) || LOG_FORMATS.iter().any(is_log)
}

/// The process of a code log of V8 by its name: `isolate-0xADDRESS-PID-v8.log`.
pub fn pid_of_v8_log(name: &[u8]) -> Option<u32> {
    let rest = name.strip_prefix(b"isolate-0x")?.strip_suffix(b"-v8.log")?;
    let mut parts = rest.split(|&byte| byte == b'-');
    let isolate = parts.next()?;
    let pid = std::str::from_utf8(parts.next()?).ok()?;
    let is_name = isolate.iter().all(u8::is_ascii_hexdigit) && parts.next().is_none();
    pid.parse().ok().filter(|_| is_name)
}

/// The name of a file without its folder.
pub fn base_name(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b'/').next().unwrap_or(name)
}

/// The last number in a file's name: `perf-123.map`, `jit-123.dump`, `jit-9-123.dump`.
pub fn pid_in_name(path: &Path) -> Option<u32> {
    let name = path.file_stem()?.to_str()?;
    name.rsplit('-').next()?.parse().ok()
}

/// The process of a log with this path that begins with these bytes: the last number in its name, or 0. `None` if it is no log.
#[must_use]
pub fn pid_of_log(path: &Path, beginning: &[u8]) -> Option<u32> {
    LogFormat::of(beginning)?;
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut numbers = name.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let last =
        numbers.next_back().and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Some(last.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_the_last_number_in_the_name() {
        let pid = |name: &str| pid_of_log(Path::new(name), b"[1f] {jit-backend-addr\n");
        assert_eq!(pid("/tmp/5/pypy-12.log"), Some(12));
        assert_eq!(pid("log.34"), Some(34));
        assert_eq!(pid("pypy-12.log.fork56"), Some(56));
        assert_eq!(pid("log"), Some(0));
        assert_eq!(pid_of_log(Path::new("pypy-12.log"), b"1000 10 a map\n"), None);
    }
}
