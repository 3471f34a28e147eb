//! Has Windows walk through jitted code of the process it is linked into: exceptions and Rust panics pass through it,
//! backtraces do not end at it, and neither do the stacks that profilers have the kernel walk.
//!
//! x86-64 alone; elsewhere the crate is empty. Code is told as to the crate `publish-unwind`:
//!
#![cfg_attr(all(windows, target_arch = "x86_64"), doc = "```")]
#![cfg_attr(not(all(windows, target_arch = "x86_64")), doc = "```ignore")]
//! use publish_unwind_windows::{Code, Unwind, Unwinders};
//!
//! # let memory = [0x55_u8, 0x48, 0x89, 0xe5, 0x5d, 0xc3];
//! if let Some(unwinders) = Unwinders::find() {
//!     let start = memory.as_ptr().addr() as u64;
//!     let code = Code { start, size: 6, visible: start..start + 6, ..Code::default() };
//!     unwinders.load(&code, Some(&Unwind::FRAME_POINTER)); // before it runs
//!     // … and before its memory is freed:
//!     unwinders.unload(start, 6);
//! }
//! ```
//!
//! # How
//!
//! By growable function tables (`RtlAddGrowableFunctionTable`), the one kind of which the kernel is told, too. Such a table
//! is for a range of addresses, and its functions ascend; a new one can be put behind the last alone. So a reservation of
//! memory with code is divided into stretches of up to 256 functions, each with its table. In a table, functions
//! that are gone leave their place, and between functions a place is left, for what comes in another order; if there is none, a
//! new table is made, known before the old one goes. Where the system takes no growable table it gets
//! a plain one (`RtlAddFunctionTable`), made anew for each function behind the last.
//!
//! A callback (`RtlInstallFunctionTableCallback`) would need no order. But the kernel cannot call it, nor can a debugger
//! without a library of its own: both would stop at jitted code.
//!
//! # Order
//!
//! A code is known before `Unwinders::load` returns, and must not run before; `Unwinders::unload` is to be
//! called when it runs no more, before its memory is used for anything else. At no instant is code unknown that is
//! loaded, whatever other threads load and unload.
//!
//! # Limits
//!
//! - There is a lock, and that of Windows: not for exception handlers that interrupt just these.
//! - A reservation has one who tells of its functions: what others told of other code in it may be hidden.
//! - UNWIND_INFO must lie above the code, within 4 GiB of where its stretch begins: where nothing is free there, code is left
//!   out. So is one across a multiple of 2 GiB.
//! - Ready sections (`Unwind::EhFrame`) are left out, and so is what Windows has no codes for: see `unwind_info::windows`.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
#![cfg(all(windows, target_arch = "x86_64"))]

mod infos;
mod memory;
mod region;
mod rest;
mod stretch;
mod table;
mod unwinders;

pub use code_image::Code;
pub use unwind_info::{Row, Unwind};
pub use unwinders::Unwinders;
