//! The integration tests that share a process, as one program.

#[cfg(all(target_arch = "x86_64", unix))]
mod caller;
#[cfg(target_os = "linux")]
mod common;
mod log;
#[cfg(all(target_arch = "x86_64", unix))]
mod memory;
mod mistakes;
mod model;
mod objects;
mod threads;
mod unwinders;
mod windows;
