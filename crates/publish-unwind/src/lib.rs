//! Has the unwinders of the process it is linked into walk through jitted code: C++ exceptions and Rust panics pass
//! through it, backtraces do not end at it.
//!
//! ```
//! use publish_unwind::{Code, Unwind, Unwinders};
//!
//! # let memory = [0x55_u8, 0x48, 0x89, 0xe5, 0x5d, 0xc3];
//! // `None` in a process without any unwinder that takes frames.
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
//! By `__register_frame`, which is looked for when the process runs, and never linked: libgcc has it, and LLVM's
//! libunwind. What they do with it differs, and each is served in its way; see `unwinders.rs`. The other libunwind, which
//! has no such function, is told by `_U_dyn_register` when it is in the process, whenever it came; see `libunwind/mod.rs`.
//!
//! Code that lies in an arena of the crate `code-arena` needs none of this.
//!
//! # Order
//!
//! A code is known before [`Unwinders::load`] returns, and must not run before; [`Unwinders::unload`] is to be
//! called when it runs no more, before its memory is used for anything else. While one thread loads and unloads,
//! others may throw: at no instant is code unknown that is loaded.
//!
//! # Limits
//!
//! - There is a lock, and those of the unwinder: not for signal handlers. In the child of a fork, that of the unwinder may be
//!   closed for ever, if another thread was throwing at that moment: that is so with or without this crate.
//! - When the process ends, what is registered stays so.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod entries;
mod found;
mod libunwind;
mod notes;
mod regions;
mod section;
mod singles;
mod unwinders;

pub use code_image::{Code, EhFrame};
pub use found::Kind;
pub use unwind_info::{Row, Unwind};
pub use unwinders::Unwinders;
