//! Unwind info for a piece of generated code, described once and encoded for tools.
//!
//! A tool that walks a stack through JIT-compiled code must know, for the current instruction, where the caller's
//! frame begins and where the caller's registers were saved. A JIT compiler describes this with an [`Unwind`]. This
//! crate encodes it as the tables that unwinders read.
//!
//! ```
//! use unwind_info::{Machine, Row, Unwind, behind_code};
//!
//! // `sub rsp, 24; …; add rsp, 24; ret`, 40 bytes in all
//! let rows = [
//!     Row::new(4, 7, 32),
//!     Row::new(39, 7, 8),
//! ];
//! let mut tables = Vec::new();
//! let sizes = behind_code(Machine::X86_64, 40, &Unwind::Rows(&rows), &mut tables)?;
//! assert_eq!(sizes.total(), tables.len());
//! # Ok::<(), unwind_info::Error>(())
//! ```
//!
//! * [`behind_code`] encodes `.eh_frame` and `.eh_frame_hdr` for a jitdump's UNWINDING_INFO.
//! * [`eh_frame`] and [`eh_frame_hdr`] encode them for any position. [`fde`] encodes one entry of a section that
//!   describes many codes. [`absolute`] encodes entries that may be copied anywhere.
//! * [`eh_frame_key_b`] encodes `.eh_frame` for AArch64 code that signs return addresses with key B.
//! * [`absolute_for`] and [`eh_frame_for`] encode them for a [`Reader`] that shows the registers of callers.
//! * [`Saves`] are the registers that code saves without saying so.
//! * [`windows::encode`] encodes what Windows uses instead.
//!
//! Everything except the output of [`absolute`] is relative to its own position: code and tables may be moved
//! together. The output is little-endian, like the machines supported here.
//!
//! The crate is designed to be called from within a runtime. It has no `unsafe` and no dependencies, it never panics,
//! and it allocates only if the caller's `Vec` lacks capacity. If a call fails, that `Vec` is unchanged.
#![forbid(unsafe_code)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::as_conversions
    )
)]

extern crate alloc;

mod absolute;
mod error;
mod fde;
mod header;
mod machine;
mod program;
mod prologue;
mod reader;
mod ready;
mod reserve;
mod saves;
mod section;
pub mod windows;

pub use absolute::{absolute, absolute_for};
pub use error::{Error, Inexpressible};
pub use fde::fde;
pub use header::{EH_FRAME_HDR_SIZE, eh_frame_hdr};
pub use jit_code::{Row, Unwind};
pub use machine::Machine;
pub use reader::Reader;
pub use saves::Saves;
pub use section::{
    EhFrame, Tables, behind_code, eh_frame, eh_frame_for, eh_frame_key_b, offset_behind,
};
