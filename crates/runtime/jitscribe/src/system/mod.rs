//! What is asked of the system, and what there is of it.
//!
//! On Linux there is all of the library. On Windows there is what works within a process: the log, in memory of its own, GDB's
//! interface, and unwinders. What other processes read is not there, for nobody reads it: a log that they find, dumps with
//! perf's marker, perf maps, requests of `jitscribe ctl`, valgrind, arenas (object files in ELF), and there is no fork. What is
//! not there has the same names, and nothing behind.

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
