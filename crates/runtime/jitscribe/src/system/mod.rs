//! The functions that depend on the system.
//!
//! On Linux, the whole library is available. On Windows, the parts within a process are: the log, in private memory; GDB's
//! interface; and unwinders. What other processes would read is not available, as there are no readers: a log that they find,
//! dumps with perf's marker, perf maps, requests of `jitscribe ctl`, Valgrind, arenas (ELF files). There is no fork. The missing
//! functions have the same names, and do nothing.
//!
//! On macOS, the same is available as on Windows, and dumps, which samply reads.

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "linux")]
mod own_memory;
#[cfg(unix)]
mod private_dir;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::*;
#[cfg(target_os = "macos")]
pub(crate) use self::macos::*;
#[cfg(target_os = "linux")]
pub(crate) use self::own_memory::OwnMemory;
#[cfg(unix)]
pub(crate) use self::private_dir::{NoDirectory, path, private_dir};
#[cfg(windows)]
pub(crate) use self::windows::*;
