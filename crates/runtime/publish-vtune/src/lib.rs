//! Reports the jitted code of the process it is linked into to VTune, or any other tool that has a collector for Intel's JIT
//! Profiling API: functions with their source lines and inlined calls, as soon as they are announced.
//!
//! ```
//! use publish_vtune::{Code, Options, Vtune};
//!
//! # let memory = [0xc3_u8];
//! // Outside of VTune: `Err`, after one variable of the environment was looked up.
//! if let Ok(vtune) = Vtune::create(Options::new().module("my runtime")) {
//!     let address = memory.as_ptr().addr() as u64;
//!     vtune.load(&Code::at(address, 1).named("nothing"));
//! }
//! ```
//!
//! # How it works
//!
//! The tool sets `INTEL_JIT_PROFILER64` (`INTEL_JIT_PROFILER32` in 32-bit processes) to the path of its collector, a shared
//! library. The publisher loads it, calls its function `Initialize`, and then its function `NotifyEvent` for each event. Intel's
//! own code for this, `jitprofiling.c`, which engines link, does the same. A program that runs with more privileges than its
//! caller (set-user-id) does not load the collector.
//!
//! The facts come from `jitprofiling.h` and `jitprofiling.c` of <https://github.com/intel/ittapi> (commit 07c2259), and from its
//! documentation (`docs/src/jit-api-support.rst`, `docs/src/jitapi`).
//!
//! # What is reported
//!
//! | | Event | |
//! |---|---|---|
//! | a code | `METHOD_LOAD_FINISHED_V3` | name, address, size, line table, source file, module |
//! | each range of an inlined call | `METHOD_INLINE_LOAD_FINISHED` | the same without a module, and the parent, to any depth |
//! | an unload | `METHOD_UNLOAD_START` | id, address, size |
//! | a move | an unload, then a load at the new address | the same ids: it is one method |
//!
//! - **Ids.** Each code and each inlined call has an id of its own, which is not used again. When all of the 32-bit numbers are
//!   used, the publisher gives up. Ids begin at a high number, as other engines in the process count from 1.
//! - **Ranges.** If an inlined call has several ranges, each has its event, with one id: the API documents this for functions
//!   that are split. Ranges of calls with one parent must not overlap, so they are cut: see `calls.rs`.
//! - **Lines.** A frame is the code itself, or an inlined call. Each has a table with the lines of one file, that of its first
//!   line. Where a call was inlined into it, it has the line of that call. Code that comes from another file, or from no line,
//!   has line 0.
//! - **Names.** Characters that are not printable become `?`. Names longer than 2,000 bytes are cut. Paths are unchanged; one
//!   that no file can have is left out.
//! - **Updates.** The API has an event for code that is changed in place (`METHOD_UPDATE`). It is not sent: new code at the
//!   address is another code, and the tool takes the old one as unloaded.
//! - **The end.** `SHUTDOWN` is not sent: it would end the collection for other engines in the process, too.
//!
//! # Threads and forks
//!
//! Several threads may call the collector at the same time, as with Intel's own code. No lock is held while it is called. The
//! events of one code follow one another on the thread that announces it, and other threads' events may come between them.
//!
//! The child of a fork goes on reporting, by the copy of the collector that it has.
//!
//! # Limits
//!
//! - Not for signal handlers, because there is a lock, and collectors allocate. If an allocation fails, the publisher gives up.
//! - The bytes of the code are not passed: the API has no place for them. The tool reads them where the code is.

#[cfg(not(target_os = "linux"))]
compile_error!("how a collector is found is known for Linux");

mod calls;
mod collector;
mod error;
mod ids;
mod layout;
mod lines;
mod options;
mod publisher;
mod text;
mod variable;

pub use error::{Cause, Error};
pub use jit_code::{Code, Inlined, Line};
pub use options::Options;
pub use publisher::Vtune;
