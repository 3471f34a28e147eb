//! Registers jitted code with the unwinders in the process: C++ exceptions and Rust panics pass through the code, and
//! backtraces do not end at it.
//!
//! ```
//! use publish_unwind::{Code, Unwinders};
//!
//! # let memory = [0x55_u8, 0x48, 0x89, 0xe5, 0x5d, 0xc3];
//! // `None` in a process without an unwinder that accepts registrations.
//! if let Some(unwinders) = Unwinders::find() {
//!     let code = Code::new(&memory).frame_pointer();
//!     unwinders.load(&code); // before it runs
//!     // … and before its memory is freed:
//!     unwinders.unload(code.address, code.size);
//! }
//! ```
//!
//! # How it works
//!
//! Through `__register_frame` of libgcc or LLVM's libunwind, which is looked up at run time, and never linked. The two
//! implement it differently, and each is handled in its own way; see `unwinders.rs`. The other libunwind (nongnu), which has
//! no such function, is informed through `_U_dyn_register`, whenever it is loaded; see `libunwind/mod.rs`.
//!
//! On macOS, whose unwinder is LLVM's, each FDE is registered by itself; see `macos.rs`.
//!
//! On Windows (x86-64), through growable function tables; see `windows/mod.rs`.
//!
//! Code in an arena of the crate `code-arena` needs no registration.
//!
//! # Order
//!
//! Code is registered before [`Unwinders::load`] returns, and must not run before. Call [`Unwinders::unload`] when it does
//! not run any more, and before its memory is used for anything else. While one thread loads and unloads, others may throw:
//! at no instant is loaded code unknown.
//!
//! # Limits
//!
//! - Not for signal handlers, because of its lock and those of the unwinder. In the child of a fork, the unwinder's lock may
//!   stay locked for ever if another thread was throwing at that moment; this is so with or without this crate.
//! - Registrations stay when the process ends.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

#[cfg(unix)]
#[cfg_attr(target_os = "macos", allow(dead_code, reason = "for unwinders of Linux"))]
mod entries;
#[cfg(unix)]
mod functions;
#[cfg(target_os = "linux")]
mod libunwind;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod linked;
#[cfg(target_os = "linux")]
mod list;
#[cfg(target_os = "linux")]
mod llvm;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod notes;
#[cfg(target_os = "linux")]
mod regions;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(unix)]
#[cfg_attr(target_os = "macos", allow(dead_code, reason = "for unwinders of Linux"))]
mod section;
#[cfg(unix)]
#[cfg_attr(target_os = "macos", allow(dead_code, reason = "for unwinders of Linux"))]
mod singles;
#[cfg(target_os = "linux")]
mod spare;
#[cfg(target_os = "linux")]
mod unwinder;
#[cfg(target_os = "linux")]
mod unwinders;
#[cfg(all(windows, target_arch = "x86_64"))]
mod windows;

#[cfg(unix)]
pub use functions::Kind;
pub use jit_code::{Code, Row, Unwind};
#[cfg(target_os = "macos")]
pub use macos::Unwinders;
#[cfg(target_os = "linux")]
pub use unwinders::Unwinders;
#[cfg(all(windows, target_arch = "x86_64"))]
pub use windows::Unwinders;
