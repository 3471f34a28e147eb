//! Recognises perf maps and jitdumps by their names, as perf does.
#![forbid(unsafe_code)]

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `perf-PID.map`.
    Map,
    /// `jit-PID.dump`, and `jit-TID-PID.dump`, which JavaScriptCore writes.
    Dump,
}

/// The kind of the file at this path, if it is either.
pub(crate) fn kind(path: &[u8]) -> Option<Kind> {
    // Nearly all paths have another suffix.
    let name = match path {
        [.., b'.', b'm', b'a', b'p'] | [.., b'.', b'd', b'u', b'm', b'p'] => {
            path.rsplit(|&byte| byte == b'/').next()?
        }
        _ => return None,
    };
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if let Some(pid) = name.strip_prefix(b"perf-").and_then(|name| name.strip_suffix(b".map")) {
        return is_number(pid).then_some(Kind::Map);
    }
    let numbers = name.strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
    numbers.split(|&byte| byte == b'-').all(is_number).then_some(Kind::Dump)
}
