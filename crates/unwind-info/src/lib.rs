//! How to unwind a piece of generated code, described once and encoded for tools.
//!
//! A tool that walks a stack through jitted code must know, for the instruction it stands on, where
//! the caller's frame begins and where the caller's registers were saved. A just-in-time compiler
//! says so with an [`Unwind`]; this crate makes of it the tables that unwinders read.
//!
//! ```
//! use unwind_info::{Machine, Row, Unwind, behind_code};
//!
//! // `sub rsp, 24; …; add rsp, 24; ret`, 40 bytes in all
//! let rows = [
//!     Row { offset: 4, cfa_register: 7, cfa_offset: 32, ..Row::default() },
//!     Row { offset: 39, cfa_register: 7, cfa_offset: 8, ..Row::default() },
//! ];
//! let mut tables = Vec::new();
//! let sizes = behind_code(Machine::X86_64, 40, &Unwind::Rows(&rows), &mut tables)?;
//! assert_eq!(sizes.total(), tables.len());
//! # Ok::<(), unwind_info::Error>(())
//! ```
//!
//! * [`behind_code`] makes `.eh_frame` and `.eh_frame_hdr` as a jitdump's UNWINDING_INFO has them.
//! * [`eh_frame`] and [`eh_frame_hdr`] make them for any place, [`fde`] one entry of a section that
//!   describes many codes; [`absolute`]
//!   makes entries that may be copied anywhere.
//! * [`windows::encode`] makes what Windows has instead.
//!
//! All that is written is relative to where it stands: code and tables may be moved together. It is
//! little-endian, as the machines known here are.
//!
//! The crate is made to be called from within a runtime: it has no `unsafe` and no dependencies, it
//! never panics, and it allocates only where the caller's `Vec` has no room left. If a call fails,
//! that `Vec` is as it was.

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
mod description;
mod error;
mod fde;
mod header;
mod leb;
mod machine;
mod program;
mod prologue;
mod ready;
mod section;
pub mod windows;

pub use absolute::absolute;
pub use description::{Row, Unwind};
pub use error::{Error, Inexpressible};
pub use fde::fde;
pub use header::{EH_FRAME_HDR_SIZE, eh_frame_hdr};
pub use machine::Machine;
pub use section::{EhFrame, Tables, behind_code, eh_frame, offset_behind};
