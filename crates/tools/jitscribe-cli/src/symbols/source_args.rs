//! The arguments that say where to look for jitdumps, perf maps and sources.

use std::path::PathBuf;

use jitscribe_inject::RecordingBegin;

use crate::files::Named;

/// Where to look for jitdumps, perf maps and sources.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SourceArgs {
    /// Read this perf map instead of searching for one [default: perf-PID.map beside the input, in
    /// JITSCRIBE_DIR and in /tmp]
    #[arg(long, value_name = "[PID=]FILE")]
    pub perf_map: Vec<Named>,
    /// Read this jitdump instead of searching for one [default: jit-PID.dump beside the input, in
    /// JITSCRIBE_DIR, JITDUMPDIR, ~/.debug/jit, $XDG_RUNTIME_DIR/jitscribe, ~/.cache/jitscribe, the
    /// working directory and /tmp]
    #[arg(long, value_name = "[PID=]FILE")]
    pub jitdump: Vec<Named>,
    /// Search for perf maps and jitdumps in this folder and its subfolders first
    #[arg(long, value_name = "DIR")]
    pub aux_dir: Vec<PathBuf>,
    /// A folder with source files, to find those that a runtime names without a path or with that of another machine
    #[arg(long, value_name = "DIR")]
    pub source_dir: Vec<PathBuf>,
    /// Folders that will be deleted: the output must not refer to files in them.
    #[arg(skip)]
    pub leaving: Vec<PathBuf>,
    /// The process announced its code to valgrind by itself, so that nothing may be left to name.
    #[arg(skip)]
    pub named_at_once: bool,
    /// When the processes were started, if that is known: perf maps that are older belong to earlier ones.
    #[arg(skip)]
    pub begin: Option<RecordingBegin>,
}
