//! Reads recordings of perf into [profiles](profile).
//!
//! [`read`] takes what `jitscribe record` or `jitscribe inject` wrote, or any other perf.data file: with code of a JIT compiler in the dumps that it
//! names, or without any. It returns the [`Profile`](profile::Profile) and, for views of machine code, a [`CodeSource`](profile::CodeSource).
//!
//! ```no_run
//! use std::path::Path;
//!
//! use profile::Totals;
//! use profile_recording::Options;
//!
//! # fn main() -> Result<(), profile_recording::Error> {
//! let recorded = profile_recording::read(Path::new("perf.data"), &Options::default(), &|_| {})?;
//! let totals = Totals::all(&recorded.profile);
//! for (function, count) in totals.functions(&recorded.profile) {
//!     let name = String::from_utf8_lossy(recorded.profile.function_name(function));
//!     println!("{} {} {name}", count.own, count.total);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Where names come from
//!
//! | Code | Names | Lines and inlined calls |
//! |---|---|---|
//! | of a JIT compiler | the symbols of the images that `inject` wrote | their DWARF |
//! | of programs and libraries | symbol tables: of the file, or of separate debug files by build-id or `.gnu_debuglink` | their DWARF |
//! | of the kernel | `/proc/kallsyms`, if the recording is of this machine and of this boot | - |
//!
//! A file whose build-id differs from the recorded one is not used. What is missing is listed once, in
//! [`Profile::missing`](profile::Profile::missing).
//!
//! Stacks that were copied are unwound. A stack that does not reach the start of its program or thread has a root frame of the kind
//! [`End`](profile::FunctionKind::End), whose name says why.
//!
//! # Hostile input
//!
//! Recordings and the files that they name may hold anything: nothing in them makes this crate panic. Files are opened by
//! [`Options::files`], as in [`jitscribe_inject`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod about;
mod bpf;
mod code_lists;
mod codes;
mod ends;
mod functions;
mod injected;
mod kernel;
mod modules;
mod namer;
mod options;
mod reader;
mod recorded_code;
mod recorded_profile;
mod source_users;
mod threads;
mod vdso;

use std::path::Path;

use jitscribe_inject::{Progress, Recording};
use perf_data::Input;

use injected::Injected;

pub use jitscribe_inject::{Error, Result};
pub use options::Options;
pub use recorded_code::RecordedCode;
pub use recorded_profile::RecordedProfile;

/// Reads the recording at `path`: a file, a directory of `perf record --threads`, or `-` for standard input.
///
/// # Errors
/// If it cannot be read, or is no recording. If it is damaged or cut off, the part before is used: see [`RecordedProfile::warnings`].
pub fn read<'f>(
    path: &Path,
    options: &Options<'f>,
    progress: &dyn Fn(Progress),
) -> Result<RecordedProfile<'f>> {
    read_input(path, Recording::input(path)?, options, progress)
}

/// Reads an open recording. `path` is used in messages.
///
/// # Errors
/// As for [`read`].
pub fn read_input<'f>(
    path: &Path,
    input: Input,
    options: &Options<'f>,
    progress: &dyn Fn(Progress),
) -> Result<RecordedProfile<'f>> {
    let recording = Recording::read(path, input, progress)?;
    let mut warnings = Vec::from_iter(recording.warning());
    let Injected { mut recording, folder, unusable } =
        injected::injected(recording, options, progress, &mut warnings)?;
    let mut recorded = reader::read(path, &mut recording, folder, options, progress)?;
    recorded.unusable = unusable;
    recorded.warnings.splice(0..0, warnings);
    Ok(recorded)
}
