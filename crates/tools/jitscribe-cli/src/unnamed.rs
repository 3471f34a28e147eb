//! What is said where code has no name: which addresses were sampled, which memory that is, what each source covers, and which command
//! makes the runtime that was found announce its code.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use jitscribe_inject::{
    Report, SourceReport, UnnamedProcess, Unusable, UnusableFile, inferred_name,
};
use profile::{Code, FunctionKind, ProcessId, UNNAMED_CODE};
use profile_recording::RecordedProfile;

use crate::runtimes::{Merge, Runtime, runtimes_of_files};
use crate::text::{self, percent};
use crate::{jitdump_folder, note};

/// Number of processes that are described.
const PROCESSES: usize = 3;
/// Number of sources of a process, and of its runtimes, that are described.
const ITEMS: usize = 3;

/// How the recorded processes were started, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Started<'a> {
    /// The command that was recorded in this environment; empty if it is not known.
    pub command: &'a [OsString],
    /// Whether it was prepared: whether its runtimes were asked to announce their code.
    pub is_prepared: bool,
    /// Whether the process has announced other code.
    pub has_code: bool,
    /// Whether processes of node were asked to load the addon.
    pub is_inspected: bool,
}

/// Says what is missing, if nothing or little has a name.
pub fn print(report: &Report, started: Started<'_>) {
    for line in lines(report, started) {
        note::say(line);
    }
}

fn lines(report: &Report, started: Started<'_>) -> Vec<String> {
    let samples = report.samples;
    let jitted = samples.jitted();
    let is_little = samples.named.saturating_mul(2) < jitted;
    let sources_of = |pid| report.sources.iter().filter(move |source| source.pid == pid);
    let is_described = |process: &&UnnamedProcess| {
        let has_code = sources_of(process.pid).any(|source| source.codes > 0);
        let is_much = process.samples.saturating_mul(20) >= jitted;
        // A few samples in stubs of the C library, for example, are not worth a message if others have names.
        let is_noticed = process.samples.saturating_mul(100) >= samples.samples;
        is_much && (is_little || !has_code) && (is_noticed || samples.named + samples.through == 0)
    };
    let mut lines = Vec::new();
    let mut described = report.unnamed.iter().filter(is_described);
    for process in described.by_ref().take(PROCESSES) {
        lines.push(format!(
            "process {} ({}): {} samples ({} of those in jitted code) are in executable memory that no source describes",
            process.pid,
            text::name(process.comm.as_bytes()),
            process.samples,
            percent(process.samples, jitted),
        ));
        lines.push(format!("  sampled: {}", memory(process)));
        lines.extend(process.unusable.iter().take(ITEMS).map(indented));
        let is_usable =
            |source: &&SourceReport| !process.unusable.iter().any(|file| file.path == source.path);
        let sources: Vec<&SourceReport> = sources_of(process.pid).filter(is_usable).collect();
        for source in sources.iter().take(ITEMS) {
            lines.push(format!("  {}", coverage(source, process)));
        }
        // It had been asked to announce its code.
        if !process.unusable.is_empty() {
            continue;
        }
        if sources.is_empty() {
            lines.push("  no jitdump and no perf map of this process was found".into());
        }
        let has_code = sources.iter().any(|source| source.codes > 0);
        let advice = advice(&process.files, Started { has_code, ..started });
        lines.extend(advice.iter().map(|line| format!("  {line}")));
    }
    let more = described.count();
    if more > 0 {
        lines.push(format!("the same of {more} more processes: --json lists them (`unnamed`)"));
    }
    lines
}

fn indented(file: &UnusableFile) -> String {
    format!("  {}", crate::unusable::line(file))
}

/// The same of a recording that is shown, where memory without a source has inferred names.
pub fn lines_of_profile(recorded: &RecordedProfile<'_>) -> Vec<String> {
    let RecordedProfile { profile, mapped_files, unusable, .. } = recorded;
    let mut unnamed: BTreeMap<ProcessId, (u64, Range<u64>)> = BTreeMap::new();
    let mut with_names: BTreeSet<ProcessId> = BTreeSet::new();
    let (mut jitted, mut named) = (0u64, 0u64);
    for sample in profile.samples().iter() {
        let Some(frame) = profile.frames_of(sample.stack).next() else { continue };
        let function = profile.function(frame.function);
        let name = profile.text(function.name);
        let is_unnamed = name == UNNAMED_CODE || inferred_name::is_place(name);
        if !is_unnamed && function.kind != FunctionKind::Jitted {
            continue;
        }
        jitted += 1;
        let process = profile.thread(sample.thread).process;
        if !is_unnamed {
            named += 1;
            with_names.insert(process);
            continue;
        }
        // Of code in an image, the frame has the address in the file.
        let code = frame.code.map(|code| profile.code(code));
        let in_process =
            |code: &Code| frame.address.checked_sub(code.module_address)?.checked_add(code.address);
        let address = code.and_then(in_process).unwrap_or(frame.address);
        let (samples, range) = unnamed.entry(process).or_insert((0, address..address));
        *samples += 1;
        *range = range.start.min(address)..range.end.max(address);
    }
    let mut unnamed: Vec<_> = unnamed.into_iter().collect();
    unnamed.sort_by_key(|(process, (samples, _))| (Reverse(*samples), *process));
    let is_much = |samples: u64| samples.saturating_mul(20) >= jitted;
    unnamed.retain(|(_, (samples, _))| named.saturating_mul(2) < jitted && is_much(*samples));
    let mut lines = Vec::new();
    for (id, (samples, range)) in unnamed.into_iter().take(PROCESSES) {
        let process = profile.process(id);
        lines.push(format!(
            "process {} ({}): {samples} samples ({} of those in jitted code) are in executable memory that no source describes, at {}",
            process.pid,
            text::name(profile.text(process.name)),
            percent(samples, jitted),
            addresses(&range),
        ));
        // Where other code has names, the jitdump may be gone because it is in the recording.
        let is_known = |file: &&UnusableFile| {
            file.pid == process.pid && (file.why != Unusable::Missing || !with_names.contains(&id))
        };
        let of_process: Vec<String> =
            unusable.iter().filter(is_known).take(ITEMS).map(crate::unusable::line).collect();
        if of_process.is_empty() {
            let files = mapped_files.get(&process.pid).map(Vec::as_slice).unwrap_or_default();
            lines.extend(advice(files, Started::default()));
        }
        lines.extend(of_process);
    }
    lines
}

/// The sampled addresses by mapping.
fn memory(process: &UnnamedProcess) -> String {
    let mut parts: Vec<String> = process
        .memory
        .iter()
        .map(|memory| {
            let kind = match memory.name.as_str() {
                _ if memory.start == memory.end => "not mapped, as far as was recorded".to_owned(),
                "" | "//anon" => "anonymous".to_owned(),
                name => text::name(name.as_bytes()).to_string(),
            };
            let sampled = addresses(&(memory.first..memory.last));
            let mapped = addresses(&(memory.start..memory.end));
            format!("{sampled} in {mapped} ({kind}; {} samples)", memory.samples)
        })
        .collect();
    let more = process.mappings.saturating_sub(process.memory.len());
    if more > 0 {
        parts.push(format!("{more} more mappings"));
    }
    parts.join(", ")
}

fn addresses(range: &Range<u64>) -> String {
    format!("{:x}-{:x}", range.start, range.end)
}

/// What a source covers, and why the samples are not in it.
fn coverage(source: &SourceReport, process: &UnnamedProcess) -> String {
    let path = text::path(&source.path);
    if source.codes == 0 {
        return format!("{path}: has no code that can be used");
    }
    let covered = source.start..source.end;
    let is_within = |memory: &jitscribe_inject::UnnamedMemory| {
        memory.first < covered.end && memory.last >= covered.start
    };
    let why = match process.memory.iter().any(is_within) {
        false => "these samples are elsewhere",
        true => "these samples are between its codes, or were taken before the code was there",
    };
    format!("{path}: {} codes at {}; {why}", source.codes, addresses(&covered))
}

/// Which runtimes a process with these files has, and what to do.
pub fn advice(files: &[PathBuf], started: Started<'_>) -> Vec<String> {
    let runtimes = runtimes_of_files(files.iter().map(PathBuf::as_path));
    if runtimes.is_empty() {
        let program = files.first().map_or(Path::new("?"), PathBuf::as_path);
        return vec![format!(
            "the JIT compiler in {} is not known: look in its documentation for a perf map or a jitdump, and add it with --perf-map FILE or \
             --jitdump FILE",
            text::path(program)
        )];
    }
    let mut lines: Vec<String> =
        runtimes.iter().take(ITEMS).map(|runtime| advice_for(runtime, started)).collect();
    let obstacle = || jitdump_folder::obstacle(&jitdump_folder::of_environment()?);
    let has_own_folder = started.is_prepared && std::env::var_os("JITDUMPDIR").is_none();
    if runtimes.iter().any(|runtime| runtime.in_jitdumpdir)
        && !started.command.is_empty()
        && !has_own_folder
    {
        lines.extend(obstacle());
    }
    lines
}

/// What to do for a runtime that is there.
pub fn advice_for(runtime: &Runtime, started: Started<'_>) -> String {
    let Runtime { name, switch, advice, variables, flags, .. } = runtime;
    let user_value = || {
        let kept = variables.iter().filter(|variable| matches!(variable.merge, Merge::Keep));
        kept.map(|variable| variable.name).find(|name| std::env::var_os(name).is_some())
    };
    if switch.is_empty() {
        return format!("it has {name}: {advice}");
    }
    if started.has_code && started.is_inspected && *name == "node" {
        return "it is node, which does not report the code of a loop that was running already when --inspect was applied".into();
    }
    if started.has_code && started.is_prepared && !variables.is_empty() {
        return format!(
            "it has {name}, which {switch} makes announce its code: what it had not written when it was ended is lost, and other compilers \
             in the process may need an option of their own"
        );
    }
    if !started.is_prepared || (variables.is_empty() && flags.is_empty()) {
        return format!("it is {name} without {switch}: {advice}");
    }
    match user_value() {
        Some(variable) => {
            format!(
                "it is {name}: {variable} has a value of yours, which was kept; {switch} makes it announce its code"
            )
        }
        None if variables.is_empty() => {
            format!(
                "it is {name}, which gets {switch} only if it is the command itself, and accepts it: {advice}"
            )
        }
        None => {
            format!(
                "it is {name}: {switch} was set, but it announced nothing here. docs/runtimes/README.md says what it needs"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[&str], is_prepared: bool) -> String {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        advice(&files, Started { is_prepared, ..Started::default() }).join("\n")
    }

    #[test]
    fn the_advice_is_about_the_runtime_that_is_there() {
        let python = ["/usr/bin/python3.11", "/x/libCling.so"];
        let advice = of(&python, false);
        assert!(advice.contains("Cling (cppyy, ROOT) without CLING_PROFILE=1"), "{advice}");
        for other in ["node", "PHP", "erl"] {
            assert!(!advice.contains(other), "{advice}");
        }
        let torch = of(&["/usr/bin/python3.11", "/x/torch/lib/libtorch_cpu.so"], false);
        assert!(torch.contains("ONEDNN_JIT_PROFILE=6"), "{torch}");
        assert!(of(&["/usr/bin/node"], false).contains("node without --perf-basic-prof"));
        // What was set is not asked for again.
        assert!(of(&["/usr/bin/node"], true).contains("was set, but"));
        // There is nothing to set.
        assert!(of(&["/usr/bin/luajit"], true).contains("its traces are found in its memory"));
        assert!(of(&["/opt/my-jit"], false).contains("/opt/my-jit is not known"));
    }
}
