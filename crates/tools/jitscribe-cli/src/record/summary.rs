//! The summary of a recording, and the commands to run next.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jitscribe_inject::files::pid_of_v8_log;
use rustix::process::geteuid;

use crate::files::{is_file, pid_in_name};
use crate::inject::{self, Report};
use crate::note;
use crate::sample_summary::{SampleSummary, TopFunction};
use crate::text::{self, percent, shell_path, shell_word};
use crate::unnamed::{self, Started};

/// The longest name, in bytes, that appears in a suggested command.
const LONGEST_SYMBOL: usize = 160;

/// Reports where the samples of a recording are.
pub fn print_samples(report: &Report, summary: &SampleSummary) {
    inject::warn(report);
    let samples = report.samples;
    let jitted = samples.jitted();
    if jitted == 0 {
        note::say(format_args!("{} samples, none of them in jitted code", samples.samples));
    } else {
        let inferred = match samples.inferred {
            0 => String::new(),
            count => format!("; inferred: {}", percent(count, jitted)),
        };
        note::say(format_args!(
            "{} samples, {jitted} of them ({}) in jitted code; named: {} before, {} now{inferred}",
            samples.samples,
            percent(jitted, samples.samples),
            percent(samples.named_before, jitted),
            percent(samples.named, jitted),
        ));
    }
    inject::print_named(report);
    inject::print_summary(summary, samples.named);
}

/// Reports what was recorded.
pub fn print(report: &Report, summary: &SampleSummary, output: &Path, started: Started<'_>) {
    print_samples(report, summary);
    unnamed::print(report, started);
    let folder = report.images.first().and_then(|image| image.path.parent());
    match folder {
        Some(folder) => {
            note::say(format_args!(
                "written: {}; object files with the code: {}",
                text::path(output),
                text::path(folder),
            ));
        }
        None => note::say(format_args!("written: {}", text::path(output))),
    }
    if let Some(first) = report.kept.first() {
        let (files, are) = if report.kept.len() == 1 { ("file", "is") } else { ("files", "are") };
        note::say(format_args!(
            "{} {files} with recorded code {are} gone, and kept with the recording: {}{}",
            report.kept.len(),
            text::path(first),
            if report.kept.len() == 1 { "" } else { ", ..." }
        ));
    }
    note::say(format_args!("next: jitscribe report -i {}", shell_word(output)));
    note::say(format_args!("      perf report -i {}", shell_word(output)));
    match to_annotate(summary) {
        Some(top) => note::say(format_args!("      {}", annotate(output, &top.symbol))),
        None if report.samples.named > 0
            && summary.top.iter().any(|top| !top.has_code && !top.interprets) =>
        {
            note::say("no code bytes available, so no assembly (perf maps carry none)");
        }
        None => (),
    }
}

/// The function whose assembly is worth a look: the first whose code is known and that is not the runtime's interpreter.
pub fn to_annotate(summary: &SampleSummary) -> Option<&TopFunction> {
    summary.top.iter().find(|top| top.has_code && top.samples > 0 && !top.interprets)
}

/// The command that shows the assembly of a function, whatever it is called.
fn annotate(output: &Path, symbol: &[u8]) -> String {
    let command = format!("perf annotate -i {}", shell_word(output));
    // Too long to type. Without a symbol, perf shows all functions.
    if symbol.len() > LONGEST_SYMBOL {
        return command;
    }
    // perf has options that run programs.
    let option: &[u8] = if symbol.starts_with(b"-") { b"--symbol=" } else { b"" };
    format!("{command} {}", shell_word(OsStr::from_bytes(&[option, symbol].concat())))
}

/// The files that runtimes wrote to places that we could not choose. Their content is in the
/// images now. They are not ours, so we do not delete them.
pub fn leftovers(report: &Report, workspace: &Path) -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> = Vec::new();
    for source in report.sources.iter().filter(|source| has_ended(source.pid)) {
        // A file in a container is gone with it.
        let is_outside = !source.path.starts_with(workspace) && !source.path.starts_with("/proc");
        if is_outside && is_file(&source.path) {
            left.push(source.path.clone());
            left.extend(companions(source.path.parent(), source.pid));
        }
    }
    left.sort();
    left.dedup();
    left
}

/// Like [`leftovers`], for maps and dumps of which only the paths are known.
pub fn list_leftover_files<'p>(written: impl Iterator<Item = &'p Path>, workspace: &Path) {
    let mut left: Vec<PathBuf> = Vec::new();
    for path in written.filter(|path| !path.starts_with(workspace)) {
        if let Some(pid) = pid_in_name(path).filter(|&pid| has_ended(pid) && is_file(path)) {
            left.push(path.to_owned());
            left.extend(companions(path.parent(), pid));
        }
    }
    left.sort();
    left.dedup();
    print_rm_command(&left);
}

fn has_ended(pid: u32) -> bool {
    !Path::new("/proc").join(pid.to_string()).exists()
}

/// Like [`leftovers`], for processes that ran under valgrind: dumps in the working directory, where runtimes write
/// them that have no setting for another place.
pub fn list_leftovers_of(pids: impl Iterator<Item = u32>) {
    let here = Path::new(".");
    let left = pids.flat_map(|pid| {
        let dump = Path::new(&format!("jit-{pid}.dump")).to_owned();
        let written = dump.is_file().then_some(dump);
        written.into_iter().flat_map(move |dump| {
            let beside = companions(Some(here), pid);
            std::iter::once(dump)
                .chain(beside.into_iter().filter_map(|path| path.file_name().map(PathBuf::from)))
        })
    });
    let left: BTreeSet<PathBuf> = left.collect();
    print_rm_command(&left.into_iter().collect::<Vec<_>>());
}

/// Prints the command that removes these files, if there are any.
pub fn print_rm_command(left: &[PathBuf]) {
    if left.is_empty() {
        return;
    }
    let words: Vec<String> = left.iter().map(|path| shell_path(path)).collect();
    note::say(format_args!("no longer needed: rm {}", words.join(" ")));
}

/// The files that runtimes write beside their dump or map: V8 a log, .NET a list of the loaded files.
fn companions(folder: Option<&Path>, pid: u32) -> Vec<PathBuf> {
    // A folder of another user may have any number of entries, or block when it is read.
    let Some(folder) = folder.filter(|folder| is_ours(folder)) else { return Vec::new() };
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let list = format!("perfinfo-{pid}.map");
    let is_one = |name: &OsStr| name == &*list || pid_of_v8_log(name.as_bytes()) == Some(pid);
    let files = entries.flatten().filter(|entry| is_one(&entry.file_name()));
    files.map(|entry| entry.path()).collect()
}

/// Whether this is our working directory, and no other user can write to it.
fn is_ours(folder: &Path) -> bool {
    // Compared by name: `stat` on another user's file system may block.
    (folder == Path::new(".") || std::env::current_dir().is_ok_and(|here| here == folder))
        && folder
            .metadata()
            .is_ok_and(|folder| folder.uid() == geteuid().as_raw() && folder.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_name_is_not_taken_for_an_option_of_perf() {
        let advised = |symbol: &str| annotate(Path::new("a b.data"), symbol.as_bytes());
        assert_eq!(advised("fib"), "perf annotate -i 'a b.data' fib");
        assert_eq!(advised("'; rm -r ~ '"), r"perf annotate -i 'a b.data' ''\''; rm -r ~ '\'''");
        let option = "perf annotate -i 'a b.data' --symbol=--objdump=/tmp/x";
        assert_eq!(advised("--objdump=/tmp/x"), option);
        for length in [161, 1 << 20] {
            assert_eq!(advised(&"x".repeat(length)), "perf annotate -i 'a b.data'");
        }
    }
}
