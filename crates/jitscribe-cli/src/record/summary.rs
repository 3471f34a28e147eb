//! What a recording shows, in a few lines, and what to type next.

use std::path::{Path, PathBuf};

use crate::files::pid_in_name;
use crate::inject::{Report, shell_word};
use crate::note;

/// Says what was recorded.
pub fn say(report: &Report, output: &Path) {
    report.warn();
    let samples = report.samples;
    let jitted = samples.jitted();
    note::say(format_args!(
        "{} samples, {jitted} of them ({}) in jitted code; of these have a name: {} before, {} now",
        samples.samples,
        percent(jitted, samples.samples),
        percent(samples.named_before, jitted),
        percent(samples.named, jitted),
    ));
    if samples.through > 0 {
        note::say(format_args!(
            "{} more ({}) have it on their call stacks",
            samples.through,
            percent(samples.through, samples.samples),
        ));
    }
    for function in &report.top {
        note::say(format_args!(
            "{:>8} {:>7}  {}",
            percent(function.samples, samples.samples),
            function.samples,
            printable(&function.name)
        ));
    }
    let folder = report.images.first().and_then(|image| image.path.parent());
    match folder {
        Some(folder) => {
            note::say(format_args!(
                "written: {}, and the code in it: {}",
                output.display(),
                folder.display(),
            ));
        }
        None => note::say(format_args!("written: {}", output.display())),
    }
    note::say(format_args!("now: perf report -i {}", shell_word(output)));
    match report.top.iter().find(|function| function.has_code) {
        Some(top) => note::say(format_args!(
            "     perf annotate -i {} {}",
            shell_word(output),
            shell_word(Path::new(&top.name))
        )),
        None if report.top.is_empty() => (),
        None => note::say(
            "names only, no assembly: what named this code is a perf map, which holds no code",
        ),
    }
}

/// Says which files the runtimes wrote where we could not choose the place. What they tell is in the
/// images now; as they are not ours, they stay.
pub fn say_left(report: &Report, workspace: &Path) {
    let mut left: Vec<PathBuf> = Vec::new();
    for source in report.sources.iter().filter(|source| has_ended(source.pid)) {
        if !source.path.starts_with(workspace) {
            left.push(source.path.clone());
            left.extend(companions(source.path.parent(), source.pid));
        }
    }
    say_paths(left);
}

/// The same of maps and dumps that processes wrote, of which nothing else is known.
pub fn say_left_files<'p>(written: impl Iterator<Item = &'p Path>, workspace: &Path) {
    let mut left: Vec<PathBuf> = Vec::new();
    for path in written.filter(|path| path.is_file() && !path.starts_with(workspace)) {
        if let Some(pid) = pid_in_name(path).filter(|&pid| has_ended(pid)) {
            left.push(path.to_owned());
            left.extend(companions(path.parent(), pid));
        }
    }
    say_paths(left);
}

fn has_ended(pid: u32) -> bool {
    !Path::new("/proc").join(pid.to_string()).exists()
}

/// The same of processes that valgrind ran: a dump in the working directory, which is where a runtime writes it
/// that cannot be told another place.
pub fn say_left_by(pids: impl Iterator<Item = u32>) {
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
    say_paths(left.collect());
}

fn say_paths(mut left: Vec<PathBuf>) {
    left.sort();
    left.dedup();
    if left.is_empty() {
        return;
    }
    let words: Vec<String> = left.iter().map(|path| shell_word(path)).collect();
    note::say(format_args!("no longer needed: rm {}", words.join(" ")));
}

/// What runtimes write beside their dump or map: V8 a log, .NET a list of the loaded files.
fn companions(folder: Option<&Path>, pid: u32) -> Vec<PathBuf> {
    let Some(entries) = folder.and_then(|folder| folder.read_dir().ok()) else { return Vec::new() };
    let (log, list) = (format!("-{pid}-v8.log"), format!("perfinfo-{pid}.map"));
    let is_one =
        |name: &str| name.starts_with("isolate-0x") && name.ends_with(&log) || name == list;
    let names = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_one));
    names.map(|entry| entry.path()).collect()
}

/// A share with one digit behind the point.
fn percent(part: u64, whole: u64) -> String {
    let tenths = (u128::from(part) * 1000).checked_div(u128::from(whole)).unwrap_or(0);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A name from a dump must not command the terminal.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_one_digit_and_nothing_of_nothing_is_nothing() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(7, 7), "100.0 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nü"), "a?[2Jb?ü");
    }
}
