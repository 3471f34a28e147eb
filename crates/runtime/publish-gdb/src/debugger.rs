//! Which debugger is attached.

use std::io::Write;

/// Whether the process is traced by gdb. False if this is not known, as for a debugger in another pid namespace.
pub(crate) fn is_gdb() -> bool {
    let Some(tracer) = guest::own_status("TracerPid:").filter(|tracer| *tracer > 0) else {
        return false;
    };
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
