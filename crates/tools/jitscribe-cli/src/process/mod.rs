//! The code logs of a running process or of a core file.
//!
//! Workers ([`crate::foreign`]) run the tasks in [`find`], [`read`] and [`request`]; [`logs`] starts these tasks.

mod context;
mod core;
mod core_notes;
mod executable;
mod find;
mod gone;
mod inside;
mod jit_list;
mod log_dump;
mod logs;
mod memory;
mod read;
mod request;
mod root;
mod source;
mod source_files;
mod wake;
mod written;

pub use self::core::{Core, CoreLog};
pub use context::ListedLogs;
pub use executable::{ReadExecutable, Reading};
pub use find::FindLogs;
pub use gone::{FileBytes, GoneFiles, HeldFile, HoldFiles, LastingFiles, ListCode};
pub use inside::{WriteInside, write_inside};
pub use jit_list::{
    ReadRegistered, RegisteredCode, RegisteredInCore, SearchFiles, SearchedFiles,
    Times as RegistrationTimes,
};
pub use log_dump::{
    Announced, DumpContext, LogDump, dump_of, merge, merge_dumps, merge_registered,
};
pub use logs::{
    ExaminedProcess, Log, Relations, began, children, examine_all, inner_pid, is_running,
    logs_for_requests, logs_of, logs_of_all, nanoseconds, newest_process, processes, read_all,
    relations, started,
};
pub use memory::{Mapping, mappings_text};
pub use read::ReadLog;
pub use request::RequestLog;
pub use source_files::{ReadSourceFiles, SourceFileReadings};
pub use written::{WrittenFile, written_files};
