//! The code logs of a running process or of a core file.
//!
//! Workers ([`crate::foreign`]) run the tasks in [`find`], [`read`] and [`ask`]; [`logs`] starts these tasks.

mod ask;
mod core;
mod find;
mod inside;
mod logs;
mod memory;
mod read;
mod source;
mod told;
mod wake;

pub use self::core::Core;
pub use ask::AskLog;
pub use find::FindLogs;
pub use inside::{WriteInside, write_inside};
pub use logs::{
    Log, began, inner_pid, logs_of, logs_of_all, logs_to_ask, parent, processes, read_all,
};
pub use memory::mappings_text;
pub use read::ReadLog;
pub use told::{Beside, Told, dump_of, merged};
