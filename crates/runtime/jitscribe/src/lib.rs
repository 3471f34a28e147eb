//! jitscribe makes JIT-compiled code visible to profilers and debuggers: a runtime announces each code once, and every tool knows
//! it.
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
//! Announcements go to the *code log*, a jitdump in memory that this process shares with readers that have the privilege to
//! inspect it. So `jitscribe record -p PID` and `jitscribe dump -p PID` know all code that was announced so far, at any time, and
//! the process needs no preparation. Writing to the log takes no system call and no lock, except once in 64 KiB, when the log
//! allocates memory. The project's `docs/format.md` specifies its format.
//!
//! # A guest in the process
//!
//! The library never disturbs the runtime: no panic, no signal, no error to handle. A feature that is not available is turned
//! off, and reported once ([`Builder::notice`], or `log` with the feature of that name). The library creates no thread, signal
//! handler, socket or file on disk unless asked to. The child of a `fork` gets its own log at its first announcement, with the
//! code that was live at the fork.
//!
//! # Modules
//!
//! What few runtimes need is beside [`Scribe`]: `arena` (memory for code that is an object file), `objects` (all live code as one
//! object), [`crash`] (for crash handlers), [`binding`] (for interfaces to other languages).
//!
//! # Types of other crates
//!
//! Some types here are defined in other crates of the project: [`Code`], [`Line`], [`Inlined`], [`Kind`], [`Row`] and
//! [`Unwind`] in `jit-code`; with the feature `arena`, those of the module `arena` in `code-arena`; with the feature `objects`,
//! `ObjectFormat` and `FinishedObject` in `code-image`. They are part of this
//! library's interface and versioned with it: a breaking change of one of them is a breaking change of `jitscribe`. Take
//! them from here, without a dependency on the other crates.

#[cfg(all(feature = "arena", target_os = "linux"))]
pub mod arena;
pub mod binding;
mod builder;
mod clock;
mod code_context;
pub mod crash;
#[cfg(feature = "gdb")]
mod crash_signal;
mod fork_state;
mod host;
#[cfg(any(
    feature = "arena",
    feature = "gdb",
    feature = "objects",
    feature = "unwinders",
    all(feature = "vtune", target_os = "linux"),
    all(feature = "etw", windows)
))]
#[cfg_attr(
    not(all(feature = "arena", feature = "gdb", feature = "objects", feature = "unwinders")),
    allow(dead_code, reason = "each feature uses a part")
)]
mod image;
mod log;
mod mistakes;
mod notice;
#[cfg(all(feature = "objects", unix))]
pub mod objects;
mod publishers;
mod scribe;
#[allow(dead_code, reason = "each publisher reads its own setting")]
mod settings;
mod spin_lock;
mod system;
mod thread;

pub use builder::{Builder, Mode};
pub use code_context::{CodeContext, CodeLog};
// Of crates of this project. They are part of this library's interface, and versioned with it: see the crate's documentation.
pub use jit_code::{Code, Inlined, Kind, Line, Row, Unwind};
pub use notice::{Notice, Subject};
pub use scribe::{LoadedCode, Scribe};
