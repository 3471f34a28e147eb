//! The C API of jitscribe.
//!
//! `include/jitscribe.h`, and the headers in `include/jitscribe` for arenas, objects and crash handlers, are generated from this source,
//! and document the API in C terms. The functions
//! here check their arguments, convert them to the types of [`jitscribe`], and call it.
//!
//! # What is `unsafe` here
//!
//! C passes pointers. Only the module `raw` dereferences them, with functions that check all that can
//! be checked. What cannot be checked (that memory is readable, and stays so during the call) is the
//! contract of the header. Each function refers to it under `# Safety`.

// The modules are private: users of the C API read the header, not the Rust documentation.
mod announce;
mod api;
#[cfg(all(target_os = "linux", feature = "arena"))]
mod arena;
mod code;
#[cfg(target_os = "linux")]
mod crash;
mod guard;
mod notice;
#[cfg(all(unix, feature = "objects"))]
mod object;
mod opaque;
mod outcome;
mod raw;
mod settings;
mod symbol;
mod text;
mod unwind;

pub use api::{
    jitscribe_code_context, jitscribe_dump_path, jitscribe_global, jitscribe_is_on, jitscribe_load,
    jitscribe_log_fd, jitscribe_moved, jitscribe_moved_to_address, jitscribe_open, jitscribe_poll,
    jitscribe_result_name, jitscribe_unload, jitscribe_version,
};
#[cfg(all(target_os = "linux", feature = "arena"))]
pub use arena::{
    ArenaFlag, ArenaSettings, OpaqueAllocation, OpaqueArena, jitscribe_allocation_edit,
    jitscribe_allocation_finish, jitscribe_allocation_free, jitscribe_arena_allocate,
    jitscribe_arena_open,
};
pub use code::{Code, Inlined, Kind, Line, Range};
#[cfg(target_os = "linux")]
pub use crash::{Stack, jitscribe_crash_stream};
pub use notice::Subject;
#[cfg(all(unix, feature = "objects"))]
pub use object::{ObjectFormat, jitscribe_write_object};
pub use opaque::{Handle, OpaqueScribe};
pub use outcome::Outcome;
pub use settings::{Flag, Mode, NoticeFn, ReplayFn, Settings};
pub use symbol::{Symbol, jitscribe_show_to_debuggers, jitscribe_symbolize};
pub use text::Str;
pub use unwind::{Row, RowFlag, Saved, Unwind, UnwindFlag, UnwindKind};
