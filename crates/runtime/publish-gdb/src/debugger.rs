//! Which debugger is attached.

use std::io::Write;

/// What traces the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Debugger {
    /// Nothing does, or this is not known.
    None,
    Gdb,
    /// Not gdb, or its name is not known, as of one in another pid namespace.
    Other,
}

impl Debugger {
    pub(crate) fn attached() -> Self {
        match guest::own_status("TracerPid:") {
            None | Some(0) => Self::None,
            Some(tracer) if is_gdb(tracer) => Self::Gdb,
            Some(_) => Self::Other,
        }
    }
}

fn is_gdb(tracer: i32) -> bool {
    let mut path = [0; 32];
    let mut rest = path.as_mut_slice();
    if write!(rest, "/proc/{tracer}/comm").is_err() {
        return false;
    }
    let unused = rest.len();
    let used = path.len().saturating_sub(unused);
    let path = path.get(..used).and_then(|path| std::str::from_utf8(path).ok());
    let mut name = [0; 16];
    path.and_then(|path| guest::begin_of(path, &mut name))
        .is_some_and(|name| name.starts_with(b"gdb"))
}
