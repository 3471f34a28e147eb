//! The files that JITs write: how files of other users are opened safely, and which are trusted.
//!
//! Their names and how to read them are in the library: [`jitscribe_inject::files`].

mod believed;
mod found_source;
mod open;

pub use believed::Believed;
pub use found_source::FoundSource;
pub use jitscribe_inject::files::content::{self, next_data};
pub use jitscribe_inject::files::{
    Damage, Index, Inode, Kind, Named, SourceFile, as_jitdump, looks_like_dump, looks_like_marker,
    pid_in_name, report_end,
};
pub use open::{
    Facts, FileSystem, Found, Opened, facts, is_file, jitdump_pid, open_all, open_owned_by,
    open_regular, open_source, reopen, same_file,
};
