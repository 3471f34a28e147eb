//! The code that a process has registered with GDB's JIT interface (see [`gdb_jit_list`]), and what else is found in its memory (see [`found_code`]).
//!
//! - [`SearchFiles`] is a task of a worker: it finds the heads of lists, or compilers, in files that a process has mapped.
//! - [`ReadRegistered`] is another one: it reads the lists, and finds code, again and again, and answers with what has changed.
//! - [`RegisteredCode`] starts both.
//! - [`RegisteredInCore`] is what a core file has of them.

mod code;
mod core;
mod files;
mod find;
mod found;
mod read;
mod registered;

pub use self::core::RegisteredInCore;
pub use files::SearchedFiles;
pub use find::SearchFiles;
pub use read::{ReadRegistered, Times};
pub use registered::RegisteredCode;
