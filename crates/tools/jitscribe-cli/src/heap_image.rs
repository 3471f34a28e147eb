//! Code in the heap image of a runtime that keeps its compiled functions in a file, as SBCL does: the file is mapped as code, but is
//! no object file, and has no symbols.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use profile::{FunctionKind, ProcessId};
use profile_recording::RecordedProfile;

use crate::runtimes::{Runtime, runtimes_of_files};
use crate::text::{self, percent};
use crate::unnamed::{Started, advice_for};

/// Number of processes that are described.
const PROCESSES: usize = 3;

/// A runtime of a process, and the names that functions in its heap images have in profiles.
struct HeapImages {
    runtime: &'static Runtime,
    names: Vec<Vec<u8>>,
}

/// What is said where a twentieth of all samples are in a heap image of a process, and have no name.
pub fn lines(recorded: &RecordedProfile<'_>) -> Vec<String> {
    let RecordedProfile { profile, mapped_files, .. } = recorded;
    let mut images: BTreeMap<ProcessId, Option<HeapImages>> = BTreeMap::new();
    let mut unnamed: BTreeMap<ProcessId, u64> = BTreeMap::new();
    let mut all = 0u64;
    for sample in profile.samples().iter() {
        all += 1;
        let Some(frame) = profile.frames_of(sample.stack).next() else { continue };
        let function = profile.function(frame.function);
        if function.kind != FunctionKind::Unknown {
            continue;
        }
        let process = profile.thread(sample.thread).process;
        let images = images
            .entry(process)
            .or_insert_with(|| heap_images(mapped_files.get(&profile.process(process).pid)?));
        let name = profile.text(function.name);
        if images.as_ref().is_some_and(|images| images.names.iter().any(|image| image == name)) {
            *unnamed.entry(process).or_default() += 1;
        }
    }
    let mut lines = Vec::new();
    let is_much = |samples: u64| samples.saturating_mul(20) >= all;
    for (id, samples) in unnamed.into_iter().filter(|(_, it)| is_much(*it)).take(PROCESSES) {
        let Some(Some(HeapImages { runtime, names })) = images.get(&id) else { continue };
        let process = profile.process(id);
        let first = names.first().map_or(&b""[..], Vec::as_slice);
        lines.push(format!(
            "process {} ({}): {samples} samples ({} of all) are in compiled functions without symbols: {}",
            process.pid,
            text::name(profile.text(process.name)),
            percent(samples, all),
            text::name(first),
        ));
        lines.push(advice_for(runtime, Started::default()));
    }
    lines
}

/// The heap images among the files of a process; `None` if it has no runtime that keeps some.
fn heap_images(files: &[PathBuf]) -> Option<HeapImages> {
    let runtimes = runtimes_of_files(files.iter().map(PathBuf::as_path));
    let runtime = runtimes.into_iter().find(|runtime| !runtime.heap_image.is_empty())?;
    let names = files.iter().filter_map(|path| path.file_name()).map(|name| name.as_bytes());
    let images = names.filter(|name| name.ends_with(runtime.heap_image.as_bytes()));
    let names: Vec<Vec<u8>> = images.map(|name| [b"[", name, b"]"].concat()).collect();
    Some(HeapImages { runtime, names })
}
