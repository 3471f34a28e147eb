//! From the positions that a runtime reports to those in the user's sources.
//!
//! - [`mod@name`] spells file names as paths that readers of recordings print whole.
//! - [`script`] finds the source map of a script, and applies it.
//! - [`deno`] finds what deno made of TypeScript.
//! - [`folders`] finds files in folders that the user named.
//! - [`missing`] remembers which folders are not on this machine.
//! - [`python`] finds the functions of a Python file.
//! - [`resolver`] combines them, and keeps the answers in a list that is [`append_only`].

mod append_only;
mod deno;
mod folders;
mod missing;
mod name;
mod python;
mod resolver;
mod script;

pub use folders::Folders as SourceFolders;
pub use name::source_name;
pub use resolver::{CachedResolver, SourceOptions, SourceResolver};
