//! Warnings: what was left out or corrected.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use printable::{name, path as shown, said, shell_path, shell_word};

use crate::files::Kind;
use crate::recording::clock::NoConversion;

/// Something that was left out or corrected. The text names the file and the cause, and suggests what to do in terms of
/// the command `jitscribe inject`. Characters in names and paths that are not printable are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The recording ends within an event.
    RecordingCutOff {
        /// The recording.
        path: PathBuf,
        /// The position, in bytes from the beginning.
        offset: u64,
        /// Number of complete events before that.
        events: u64,
    },
    /// From some event on, the recording is invalid.
    RecordingDamaged {
        /// The recording.
        path: PathBuf,
        /// What is wrong.
        cause: perf_data::Cause,
        /// The position, in bytes from the beginning.
        offset: u64,
        /// Number of valid events before that.
        events: u64,
    },
    /// A file that was named as a jitdump, or that a process mapped under the name of one, is not a jitdump.
    NoJitdump {
        /// The file.
        path: PathBuf,
    },
    /// A jitdump or perf map has no content: its writer ended before it wrote any, or could not write.
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The process of a jitdump that was named is not in the recording.
    NoSuchProcess {
        /// The jitdump.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// The recording has the marker of a jitdump that was not found.
    JitdumpMissing {
        /// Its path when it was recorded.
        path: PathBuf,
        /// The process that wrote it.
        pid: u32,
        /// The name of the process.
        comm: String,
    },
    /// A perf map was named that belongs to no process of the recording.
    NobodysMap {
        /// The perf map.
        path: PathBuf,
    },
    /// A file was found that belongs to a user who is not related to the process.
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Its format.
        kind: Kind,
        /// The process for which it was found.
        pid: u32,
        /// The file's owner.
        user: u32,
    },
    /// A perf map was found that was last changed before the recording began, and so before the process did.
    OfEarlierProcess {
        /// The perf map.
        path: PathBuf,
        /// The process for which it was found.
        pid: u32,
    },
    /// A file could not be read, and is left out.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// A source map, or a part of it, cannot be used.
    SourceMap {
        /// The file with the map.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// A part of a file was not read.
    PartlyRead {
        /// The file.
        path: PathBuf,
        /// The part, and the reason.
        left_out: String,
    },
    /// A jitdump belongs to another run, and is left out.
    OtherRun {
        /// The jitdump.
        path: PathBuf,
        /// The evidence.
        why: OtherRun,
    },
    /// A jitdump has no code.
    NoCode {
        /// The jitdump.
        path: PathBuf,
    },
    /// All code of a jitdump or perf map is in files that have symbols for it; or, of a perf map, in files that cannot be read.
    NamedByFiles {
        /// The jitdump or perf map.
        path: PathBuf,
        /// Number of codes.
        codes: usize,
        /// The first of these files.
        file: PathBuf,
        /// Why it has the code.
        why: FileHasCode,
    },
    /// `perf inject --jit` has written the recording: it has code of jitdumps already, in files of its own.
    AfterPerfInject {
        /// The recording.
        path: PathBuf,
    },
    /// A jitdump's clock differs from the recording's; its times were converted.
    ClockMoved {
        /// The jitdump.
        path: PathBuf,
        /// The offset in nanoseconds.
        offset: i64,
    },
    /// A jitdump's clock differs from the recording's by an unknown offset.
    ClocksDiffer {
        /// The jitdump.
        path: PathBuf,
    },
    /// A jitdump's times cannot be converted.
    ClockUnknown {
        /// The jitdump.
        path: PathBuf,
        /// The cause.
        cause: NoConversion,
    },
    /// Parts of a file are invalid; the rest is used.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first error.
        first: String,
        /// Number of further errors.
        more: usize,
    },
    /// Reading a jitdump failed midway.
    ReadingFailed {
        /// The jitdump.
        path: PathBuf,
        /// The system's error.
        cause: String,
        /// Number of codes before that.
        codes: usize,
    },
    /// A process's code log had no space for some of its codes.
    CodesMissing {
        /// The jitdump.
        path: PathBuf,
        /// Number of codes.
        count: u64,
    },
    /// A jitdump ends within a record.
    JitdumpCutOff {
        /// The jitdump.
        path: PathBuf,
        /// The position, in bytes from the beginning.
        offset: u64,
        /// Number of codes before that.
        codes: usize,
    },
    /// From some position on, a jitdump has no records.
    JitdumpEndsEarly {
        /// The jitdump.
        path: PathBuf,
        /// The position, in bytes from the beginning.
        offset: u64,
        /// Number of codes before that.
        codes: usize,
    },
    /// The code of a perf map or jitdump is that of a guest of QEMU's, whose files the recording does not have.
    NoGuestFiles {
        /// The perf map or jitdump.
        path: PathBuf,
    },
    /// There is no code to show.
    NothingApplied(NothingApplied),
    /// Code was replaced too often for one image per epoch.
    TooManyEpochs,
    /// Parts of code are left out of images, because their names and lines take too much space.
    PartsLeftOut {
        /// Number of parts.
        parts: usize,
    },
    /// Memory was mapped over code more often than the limit allows.
    MappedOverTooOften,
    /// Codes are split, because the code around them is too large for one image.
    Torn {
        /// Number of codes.
        codes: usize,
    },
    /// The sources of scripts could not be kept beside the images, where another user may have put something else.
    SourcesNotKept {
        /// Their folder.
        folder: PathBuf,
        /// The system's error.
        cause: String,
    },
    /// A warning of the program that uses this library, for programs that add to a report's warnings.
    Other(String),
}

/// The evidence that a jitdump belongs to another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherRun {
    /// All of its code was loaded after the recording ended.
    Later,
    /// All of its code was loaded before the process began.
    Earlier,
}

/// Why code is left to the file that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileHasCode {
    /// The file has a symbol there.
    Symbol,
    /// It is an image of an earlier injection, which names that code.
    Image,
    /// It may have a symbol, but cannot be read.
    Unreadable,
}

/// Why there is no code to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NothingApplied {
    /// The files that were found contain no code.
    NoCode,
    /// The recording has markers, but no jitdump was found.
    DumpsMissing,
    /// Perf maps were found, or jitdumps without a marker, but none can be used.
    Unusable,
    /// The recording has no marker, and no perf map was found.
    NoFiles,
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::RecordingCutOff { path, offset, events } => write!(
                f,
                "{}: truncated at offset {offset:#x}; the {events} events before that are kept",
                shown(path)
            ),
            Self::RecordingDamaged { path, cause, offset, events } => write!(
                f,
                "{}: {cause} at offset {offset:#x}; the {events} events before that are kept",
                shown(path)
            ),
            Self::NoJitdump { path } => {
                write!(f, "{}: not a readable jitdump; skipped", shown(path))
            }
            Self::Empty { path } => {
                write!(f, "{}: empty (0 bytes): its writer wrote nothing into it", shown(path))
            }
            Self::NoSuchProcess { path, pid } => write!(
                f,
                "{}: the recording has no process {pid}; specify the process with \
                 --jitdump PID={}",
                shown(path),
                shell_word(path)
            ),
            Self::JitdumpMissing { path, pid, comm } => write!(
                f,
                "{}: the jitdump of {} (pid {pid}) is not there; specify where it is now with \
                 --jitdump FILE or --aux-dir DIR",
                shown(path),
                name(comm)
            ),
            Self::NobodysMap { path } => write!(
                f,
                "{}: its name matches no process of the recording; specify the process with \
                 --perf-map PID={}",
                shown(path),
                shell_word(path)
            ),
            Self::Untrusted { path, kind, pid, user } => write!(
                f,
                "{}: skipped: belongs to user {user}, but process {pid} is not known to run as that user, and any user can \
                 create a file there. To use it anyway: {} {pid}={}",
                shown(path),
                kind.option(),
                shell_word(path)
            ),
            Self::OfEarlierProcess { path, pid } => write!(
                f,
                "{}: skipped: last changed before the recording began, but process {pid} started after that, so an earlier \
                 process with this id wrote it. To use it anyway: --perf-map {pid}={}",
                shown(path),
                shell_word(path)
            ),
            Self::Unreadable { path, cause } => {
                write!(f, "{}: {cause}; skipped", shown(path))
            }
            Self::SourceMap { path, cause } => {
                write!(f, "{}: source map: {}", shown(path), said(cause))
            }
            Self::PartlyRead { path, left_out } => write!(f, "{}: {left_out}", shown(path)),
            Self::OtherRun { path, why } => {
                let why = match why {
                    OtherRun::Later => "all of its code was generated after the recording ended",
                    OtherRun::Earlier => "all of its code was generated before the process started",
                };
                write!(f, "{}: skipped: belongs to a different run ({why})", shown(path))
            }
            Self::NoCode { path } => write!(f, "{}: contains no code", shown(path)),
            Self::NamedByFiles { path, codes, file, why } => {
                write!(f, "{}: not used: its code ({codes} in all) is in ", shown(path))?;
                let file = shown(file);
                match why {
                    FileHasCode::Symbol => {
                        write!(f, "files that have symbols of their own there, such as {file}")
                    }
                    FileHasCode::Image => write!(
                        f,
                        "the recording already: an earlier run of jitscribe named it, by {file} and others"
                    ),
                    FileHasCode::Unreadable => write!(
                        f,
                        "files that may have symbols of their own there, but cannot be read, such as {file}"
                    ),
                }
            }
            Self::AfterPerfInject { path } => write!(
                f,
                "{}: this recording has been through perf inject --jit; use the original, or jitscribe report reads it as it is",
                shown(path)
            ),
            Self::ClockMoved { path, offset } => write!(
                f,
                "{}: the recording was not made with -k mono; the dump's timestamps are \
                 shifted by {:.3} ms to match it",
                shown(path),
                *offset as f64 / 1e6
            ),
            Self::ClocksDiffer { path } => write!(
                f,
                "{}: the recording was not made with -k mono, and the offset between its \
                 clock and the dump's is unknown; code that was replaced soon may be misnamed",
                shown(path)
            ),
            Self::ClockUnknown { path, cause } => write!(f, "{}: {cause}", shown(path)),
            Self::Damaged { path, first, more } => {
                let more = match more {
                    0 => String::new(),
                    more => format!(", and {more} more damaged places"),
                };
                write!(
                    f,
                    "{}: {}{more}; for details, run: jitscribe check {}",
                    shown(path),
                    said(first),
                    shell_path(path)
                )
            }
            Self::ReadingFailed { path, cause, codes } => {
                write!(f, "{}: {cause}; the {codes} codes before that are used", shown(path))
            }
            Self::CodesMissing { path, count } => write!(
                f,
                "{}: {count} codes are missing because the log of the process was full",
                shown(path)
            ),
            Self::JitdumpCutOff { path, offset, codes } => write!(
                f,
                "{}: truncated at offset {offset:#x}, or still being written; the {codes} codes \
                 before that are used",
                shown(path)
            ),
            Self::JitdumpEndsEarly { path, offset, codes } => write!(
                f,
                "{}: no valid records from offset {offset:#x} on; the {codes} codes before that \
                 are used",
                shown(path)
            ),
            Self::NoGuestFiles { path } => write!(
                f,
                "{}: QEMU's code is named by guest addresses, because the recording does not show which files the guest \
                 has mapped; record with --data",
                shown(path)
            ),
            Self::NothingApplied(why) => f.write_str(match why {
                NothingApplied::NoCode => {
                    "nothing was applied: the files that were found have no code to use"
                }
                NothingApplied::DumpsMissing => {
                    "nothing was applied: none of the recorded dumps can be used"
                }
                NothingApplied::Unusable => {
                    "nothing was applied: no jitdump or perf map that was found can be used"
                }
                NothingApplied::NoFiles => {
                    "nothing was applied: the recording shows no jitdump and no perf map was found; for a file elsewhere, use \
                     --jitdump FILE or --perf-map FILE"
                }
            }),
            Self::TooManyEpochs => f.write_str(
                "code was replaced too often to show each state in an object file of its own; call \
                 stacks that perf unwinds from copies may end at replaced code",
            ),
            Self::PartsLeftOut { parts } => write!(
                f,
                "skipped {parts} parts of code, because their names and lines are too long to repeat for each \
                 part",
            ),
            Self::MappedOverTooOften => f.write_str(
                "memory was mapped over code more often than can be tracked; samples in code may show \
                 what was mapped there instead",
            ),
            Self::Torn { codes } => write!(
                f,
                "code without gaps exceeds what one object file can show, so {codes} of its functions are \
                 shown in parts; offsets count from the beginning of each part",
            ),
            Self::SourcesNotKept { folder, cause } => write!(
                f,
                "{}: {}; the sources of scripts are not kept, and perf annotate shows code of theirs without source text",
                shown(folder),
                said(cause),
            ),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// The text of the warning.
impl From<Warning> for String {
    fn from(warning: Warning) -> Self {
        warning.to_string()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Warning {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
