//! Brings what JIT compilers wrote into recordings of perf, and answers which code was at an address at a time.
//!
//! A JIT compiler describes its code in a jitdump or a perf map. perf records samples, and mappings of files and memory.
//! This crate joins the two: it finds the files of the recorded processes, converts their times to the recording's clock,
//! and knows for each process, time and address which code was there. It is the library behind the command
//! `jitscribe inject`. It prints nothing, sets no process-wide state, and tells of its progress by a callback.
//!
//! | Type | Purpose |
//! |---|---|
//! | [`Recording`] | a recording of perf that was read once: its processes, their mappings, its clock |
//! | [`Sources`] | the jitdumps and perf maps that belong to it; [`Sources::read`] gives the [`Codes`] in them |
//! | [`CodeIndex`] | answers which code was at an address of a process at a time, with offset, line and inlined chain |
//! | [`SampleAttribution`] | the samples of the recording by code |
//! | [`Plan`] | which images (object files made of code) are mapped where, and when |
//! | [`Injector`] | all steps in a row: writes the images, and the recording with the images mapped |
//! | [`StackCounter`] | counts how many call stacks of a recording are whole, and why the others end |
//! | [`Report`] | what was done; its [`Warning`]s name what was left out or put right |
//!
//! Times are nanoseconds of the recording's clock, sizes and offsets are bytes.
//!
//! # Bringing code into a recording
//!
//! ```no_run
//! use std::path::Path;
//!
//! use jitscribe_inject::{Destination, Injector, Output, Recording, SearchPaths};
//!
//! # fn main() -> Result<(), jitscribe_inject::Error> {
//! let mut recording = Recording::open(Path::new("perf.data"), &|_| {})?;
//! let paths = SearchPaths {
//!     beside: Some(".".into()),
//!     recorded_here: recording.is_of_this_machine(),
//!     ..SearchPaths::default()
//! };
//! let destination = Destination::File(Output::create(Path::new("out.data"), false)?);
//! let report = Injector::new(paths).inject(&mut recording, destination)?;
//! assert!(report.samples.named <= report.samples.samples);
//! # Ok(())
//! # }
//! ```
//!
//! # Asking for the code at an address
//!
//! ```no_run
//! # use std::path::Path;
//! use jitscribe_inject::files::PlainFiles;
//! use jitscribe_inject::{CodeIndex, Recording, SearchPaths, Sources};
//!
//! # fn main() -> Result<(), jitscribe_inject::Error> {
//! # let recording = Recording::open(Path::new("perf.data"), &|_| {})?;
//! # let paths = SearchPaths::default();
//! let mut warnings = Vec::new();
//! let sources = Sources::find(&recording, &paths, &PlainFiles, &mut warnings);
//! let codes = sources.read(&recording, &PlainFiles, &mut warnings);
//! let mut index = CodeIndex::new(&recording, &codes);
//! let (pid, time, address) = (4711, 1_000_000_000, 0x7f00_0000_0010);
//! if let Some(found) = index.lookup(pid, time, address)? {
//!     for frame in found.inlined_chain() {
//!         let function = String::from_utf8_lossy(frame.function);
//!         let file = String::from_utf8_lossy(frame.file);
//!         println!("{function} at {file}:{}", frame.line);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Hostile input
//!
//! Recordings, jitdumps and perf maps may hold anything: no input makes this crate panic, or take more than n·log n time
//! and memory of what is really in the files. Names and paths are as their writers chose them. Errors and warnings spell
//! out what would command a terminal; a program that prints names itself must do so, too.
//!
//! Files are opened through the trait [`files::SourceFiles`]. [`files::PlainFiles`] is for programs that have no more rights
//! than who wrote the files, or that look at files of their own. The command has an implementation that opens them in
//! processes of their own.
#![forbid(unsafe_code)]

mod attribution;
mod codes;
mod error;
pub mod files;
mod injector;
mod interner;
mod limits;
mod parallel;
mod plan;
mod progress;
mod recording;
mod summary;
mod warning;
mod write;

pub use ::code_index::{CodeLines, Frame};
pub use attribution::SampleAttribution;
pub use attribution::counts::Counts;
pub use attribution::mapped_files::Guesses;
pub use attribution::runtime_file::RuntimeFile;
pub use attribution::samples::{MemoryAt, SampleEvent, SampledMemory, StackEnd, StackSample};
pub use code_image::jitdump::LineTable;
pub use code_timeline::{AddressSpaceId, CodeId};
pub use codes::code_index::{CodeAtAddress, CodeIndex};
pub use codes::code_lines::{decoded_lines, resolved_lines};
pub use codes::earlier_maps::RecordingBegin;
pub use codes::inferred_name;
pub use codes::locate::{SearchPaths, SeenProcess, Source};
pub use codes::original_places::{OriginalPlaces, SourcePlace};
pub use codes::source_lines::{
    CachedResolver, SourceFolders, SourceOptions, SourceResolver, source_name,
};
pub use codes::sources::{Codes, Sources};
pub use codes::unusable::{Unusable, UnusableFile};
pub use error::{Error, Result};
pub use injector::Injector;
pub use plan::output_limits;
pub use plan::{Arena, ImageCode, Mapping, Place, Plan, PlannedImage};
pub use progress::{Progress, Stage};
pub use recording::Recording;
pub use recording::clock::NoConversion;
pub use recording::kept_files::{KeptFile, KeptFiles};
pub use recording::recording_index::KernelSymbol;
pub use stack_unwind::{End, Guess};
pub use summary::demangle::demangled_symbol;
pub use summary::jitted_function;
pub use summary::report::{ImageReport, Report, SourceReport, UnnamedMemory, UnnamedProcess};
pub use summary::stack_counts::{StackCounts, StackEnds, Stacks};
pub use summary::stacks::{CallStack, StackCounter};
pub use warning::{FileHasCode, NothingApplied, OtherRun, Warning};
pub use write::destination::Destination;
pub use write::output;
pub use write::output::Output;
pub use write::scripts::SOURCES;
pub use write::spelling::without_spelling;
