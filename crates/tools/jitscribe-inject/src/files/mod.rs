//! The files in which JIT compilers describe their code: what they are called, where they lie, and how they are read.

pub mod content;
mod damage;
mod index;
mod name;
mod open;

pub use damage::{Damage, tell_end};
pub use index::Index;
pub use name::{Kind, Named, base_name, looks_like_marker, pid_in_name};
pub use open::{Inode, PlainFiles, SourceFile, SourceFiles, Untrusted, pid_in_header};
