//! callgrind.out files: reads them line by line, writes them, and names the code in them that callgrind did not know.
//!
//! The format is that of Valgrind's manual ("Callgrind Format Specification"), as callgrind actually writes it: names
//! and positions compressed or not, with instructions, jumps, caller contexts, recursion levels and several parts in
//! one file.
//!
//! [`rewrite`] copies a profile. Code that callgrind calls `0x00000000048c1000` in the object `???` gets the
//! functions, objects and source lines that a [`CodeMap`] has for it. Code that its process announced to callgrind gets the lines that
//! it lost by the end of the process. Everything else is copied byte for byte.
//!
//! ```
//! use callgrind_profile::{CodeMap, Function, Owner, Place};
//!
//! fn text(text: &str) -> std::rc::Rc<[u8]> {
//!     text.as_bytes().into()
//! }
//!
//! struct Map;
//! impl CodeMap for Map {
//!     fn at(&mut self, address: u64) -> Option<Owner> {
//!         let range = 0x1000..0x1040;
//!         range.contains(&address).then_some(Owner { function: 0, start: 0x1000, visible: range })
//!     }
//!     fn function(&mut self, _: u32) -> Function {
//!         Function { name: text("fib"), object: text("jit.so"), file: text("fib.lang") }
//!     }
//!     fn place(&mut self, _: u32, address: u64) -> Option<Place> {
//!         Some(Place { file: text("fib.lang"), line: if address < 0x1003 { 1 } else { 2 } })
//!     }
//! }
//!
//! let profile = b"positions: instr line\nevents: Ir\n\n\
//!     ob=(1) ???\nfl=(1) ???\nfn=(1) 0x0000000000001000\n0x1000 0 7\n+3 0 7\n\ntotals: 14\n";
//! let mut out = Vec::new();
//! let summary = callgrind_profile::rewrite(&profile[..], &mut out, &mut Map)?;
//! assert_eq!(summary.events[0].named, 14);
//! let out = String::from_utf8_lossy(&out);
//! assert!(out.contains("ob=jit.so\nfl=fib.lang\nfn=fib\n0x1000 1 7\n+3 +1 7\n"), "{out}");
//! # Ok::<(), callgrind_profile::Error>(())
//! ```
//!
//! The content of a profile is treated as hostile: it causes no panic. Memory use is limited to that of the names in
//! the profile and the unknown code of one part.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod code_map;
mod context;
mod error;
mod line;
mod lines;
mod names;
mod position;
mod rewrite;
mod scan;
mod write;

pub use code_map::{CodeMap, Function, Owner, Place};
pub use error::{Cause, Error};
pub use line::{Field, Kind, Line, NameRef, parse};
pub use lines::{Lines, Raw};
pub use position::{Column, Columns, Positions};
pub use rewrite::{Event, Summary, rewrite};
