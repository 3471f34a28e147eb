//! Registers jitted code with Windows: exceptions and Rust panics pass through the code, and backtraces do not end at it, nor
//! do the stacks that the kernel walks for profilers.
//!
//! Only for x86-64.
//!
//! # How it works
//!
//! It uses growable function tables (`RtlAddGrowableFunctionTable`), the only kind that the kernel knows, too. Such a table
//! covers a range of addresses, and its functions ascend; a new function can only be appended. So a memory reservation with
//! code is divided into blocks of up to 256 functions, each with its own table. Unloaded functions leave free entries in a
//! table, and some entries between functions are kept free, for code that is loaded in another order. If there is no free
//! entry, a new table is created, and is registered before the old one is removed. If the system does not accept a growable
//! table, a plain one (`RtlAddFunctionTable`) is used, and recreated for each function that is appended.
//!
//! A callback (`RtlInstallFunctionTableCallback`) would not need an order. But the kernel cannot call it, nor can a debugger
//! without a special library: both would stop at jitted code.
//!
//! # Order
//!
//! Code is registered before `Unwinders::load` returns, and must not run before. Call `Unwinders::unload` when it does not run
//! any more, and before its memory is used for anything else. At no instant is loaded code unknown, whatever other threads load
//! and unload.
//!
//! # Limits
//!
//! - Not for exception handlers that may interrupt this crate, because of its lock and that of Windows.
//! - Only one publisher can describe the functions in a reservation: functions that others register there may be hidden.
//! - UNWIND_INFO must be above the code, within 4 GiB of the beginning of its block. If nothing is free there, the code is
//!   left out. Code across a multiple of 2 GiB is left out, too.
//! - Ready sections (`Unwind::EhFrame`) are left out, as is what Windows has no unwind codes for: see `unwind_info::windows`.

mod block;
mod infos;
mod memory;
mod region;
mod retired;
mod table;
mod unwinders;

pub use unwinders::Unwinders;
