//! Names and unwinds JIT-compiled code in minidumps, for minidump-processor.
//!
//! minidump-processor asks symbol providers only about addresses in a module, and JIT-compiled code is in none. So
//! [`with_code_modules`] first makes modules of the code, in a copy of the minidump:
//!
//! ```
//! # async fn process(minidump: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
//! use jitscribe_crash_symbols::{CodeSymbols, with_code_modules};
//! use minidump_unwind::MultiSymbolProvider;
//!
//! let mut provider = MultiSymbolProvider::new();
//! if let Some(symbols) = CodeSymbols::find(&minidump)? {
//!     provider.add(Box::new(symbols));
//! }
//! // … and the providers for native code.
//! let minidump = with_code_modules(&minidump)?.unwrap_or(minidump);
//! let minidump = minidump::Minidump::read(minidump)?;
//! // let state = minidump_processor::process_minidump(&minidump, &provider).await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod codes;
mod frame;
mod provider;
mod registers;

pub use crash_stream::{Error, with_code_modules};
pub use provider::CodeSymbols;
