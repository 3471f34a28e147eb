//! The functions that depend on the system.
//!
//! On Linux, the whole library is available. On Windows, the parts within a process are: the log, in private memory; GDB's
//! interface; and unwinders. What other processes would read is not available, as there are no readers: a log that they find,
//! dumps with perf's marker, perf maps, requests of `jitscribe ctl`, Valgrind, arenas (ELF files). There is no fork. The missing
//! functions have the same names, and do nothing.

#[cfg(unix)]
mod cgroup;
#[cfg(unix)]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::linux::*;
#[cfg(windows)]
pub(crate) use self::windows::*;
