//! jitscribe: a JIT says once what code it made, and every tool knows it.
//!
//! ```
//! use jitscribe::{Code, Scribe};
//! # let memory = [0x6a_u8, 42, 0x58, 0xc3];
//! let scribe = Scribe::global();
//! let code = scribe.load(&Code::new(&memory).named("answer"));
//! // … the code runs, until it is freed:
//! drop(code);
//! ```
//!
//! The announcements go into the *code log*: a jitdump in memory that this process shares with
//! whoever may look into it, so that `jitscribe record -p PID` and `jitscribe dump -p PID` know all
//! code made so far, at any time, without the process having prepared for it. Writing to it takes
//! no system call and no lock, but once in 64 KiB, when the log gets memory. Its format is specified in the project's `docs/format.md`.
//!
//! # A guest in the process
//!
//! Nothing here fails into the runtime: no panic, no signal, no error to handle. What cannot be had
//! is off, and said once ([`Builder::on_notice`], or `log` with the feature of that name). No
//! thread, no signal handler, no socket, no file on disk unless asked for. A child of `fork` gets a
//! log of its own with what was alive, at its first announcement.
//!
//! # Types of other crates
//!
//! Some types here are defined in other crates of the project: [`Code`], [`Line`], [`Inlined`], [`Kind`], [`Row`] and
//! [`Unwind`] in `jit-code`; with the feature `arena`, `CodeArena`, `Draft`, `Executable` and `ArenaOptions` in
//! `code-arena`; with the feature `objects`, `ObjectFormat` and `FinishedObject` in `code-image`. They are part of this
//! library's interface and versioned with it: a breaking change of one of them is a breaking change of `jitscribe`. Take
//! them from here, without a dependency on the other crates.

mod builder;
mod clock;
#[cfg(feature = "gdb")]
mod crash;
mod fork_state;
mod host;
#[cfg(any(feature = "arena", feature = "gdb", feature = "objects", feature = "unwinders"))]
#[cfg_attr(
    not(all(feature = "arena", feature = "gdb", feature = "objects", feature = "unwinders")),
    allow(dead_code, reason = "each feature uses a part")
)]
mod image;
mod latch;
mod log;
mod notice;
#[cfg(all(feature = "objects", unix))]
mod objects;
mod publishers;
mod scribe;
#[allow(dead_code, reason = "each publisher reads its own setting")]
mod settings;
mod system;
mod thread;

pub use builder::Builder;
// Of crates of this project. They are part of this library's interface, and versioned with it: see the crate's documentation.
#[cfg(all(feature = "arena", unix))]
pub use code_arena::{CodeArena, Draft, Executable, Options as ArenaOptions};
pub use jit_code::{Code, Inlined, Kind, Line, Row, Unwind};
pub use notice::{Notice, Subject};
#[cfg(all(feature = "objects", unix))]
pub use objects::{FinishedObject, FormatError, ObjectError, ObjectFormat};
pub use scribe::{LoadedCode, Scribe};
