//! The files in which JITs tell of their code: what they are called, and where they lie.

mod damage;
mod index;
mod name;
mod open;

pub use damage::{Damage, tell_end};
pub use index::Index;
pub use name::{Kind, Named, base_name, looks_like_marker, pid_in_name};
pub use open::{is_file, jitdump_pid, open_regular, same_file};
