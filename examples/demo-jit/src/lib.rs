//! A small language compiled by Cranelift, which announces its code: the demo JIT.
//!
//! [`run`] compiles a program of this language while it runs it: functions that call one another
//! and recurse, also through native code; one is compiled three times at the same address, one is
//! moved, one freed and its place taken. What it made it announces through the library
//! [`jitscribe`], so that profilers can name it, and, for whoever checks the profilers, writes down
//! the truth about it ([`CodeVersion`]). Its optimising tiers compile small callees in place.
//!
//! # The language
//! Values are 64-bit integers, arithmetic wraps, dividing by 0 gives 0.
//! ```
//! use demo_jit::{Printed, evaluate, parse};
//!
//! let program = parse(
//!     "fn even(n) {
//!          if n == 0 { return 1; }
//!          return !apply(even, n - 1); // the host calls back
//!      }
//!      fn main(n) {
//!          let i = 0;
//!          while i < n && i < 10 { i = i + 1; }
//!          print(i);
//!          return even(i);
//!      }",
//! )?;
//! let mut printed = Printed::default();
//! let main = program.find("main").unwrap();
//! assert_eq!(evaluate(&program, main, &[7], &mut printed), 0);
//! assert_eq!(printed.first, [7]);
//! # Ok::<(), demo_jit::SyntaxError>(())
//! ```
//! Functions have up to five parameters. `let` declares a variable up to the block's end. Operators
//! and their precedence are Rust's, `==` and `!=` a step looser; `print(a)` hands a value to the
//! host, `apply(f, a)` lets the host call `f(a)`.

mod announce;
mod arena;
pub mod ast;
mod codegen;
mod error;
mod evaluate;
mod frame;
mod inline;
mod lexer;
mod library;
mod memory;
mod native;
mod options;
mod parser;
mod plan;
mod run;
mod tiers;
mod truth;
mod unwind;

pub use codegen::Tier;
pub use error::{Error, SyntaxError};
pub use evaluate::evaluate;
pub use memory::MemoryKind;
pub use native::Printed;
pub use options::{Called, Options, Pace, Phase, Report};
pub use parser::{PARAMETERS_MAX, parse};
pub use run::run;
pub use truth::{CodeLine, CodeVersion, InlinedInto};
