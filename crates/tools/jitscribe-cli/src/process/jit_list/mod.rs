//! The code that a process has registered with GDB's JIT interface: see [`gdb_jit_list`].
//!
//! - [`FindHeads`] is a task of a worker: it finds the heads of lists in files that a process has mapped.
//! - [`ReadRegistered`] is another one: it reads the lists, again and again, and answers with what has changed.
//! - [`RegisteredCode`] starts both.
//! - [`RegisteredInCore`] is what a core file has of them.

mod code;
mod core;
mod files;
mod find;
mod read;
mod registered;

pub use self::core::RegisteredInCore;
pub use files::HeadsByFile;
pub use find::FindHeads;
pub use read::{ReadRegistered, Times};
pub use registered::RegisteredCode;
