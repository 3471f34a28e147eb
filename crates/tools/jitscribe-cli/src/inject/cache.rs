//! perf's build-id cache (`~/.debug`): where perf finds object files by what they are, wherever they
//! lie.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::text;

/// Adds object files to the cache.
pub fn add(images: &[&Path], warnings: &mut Vec<String>) -> bool {
    let before = warnings.len();
    for image in images {
        let done = Command::new("perf").args(["buildid-cache", "--add"]).arg(image).output();
        let failed = match done {
            Ok(output) if output.status.success() => continue,
            Ok(output) => output.status.to_string(),
            Err(error) => error.to_string(),
        };
        warnings.push(format!("{}: perf buildid-cache: {failed}", text::path(*image)));
    }
    warnings.len() == before
}

/// Adds the object files of those processes that cannot see them, and says so.
///
/// As long as a process runs, perf looks in its mount namespace for what it has mapped (`util/namespaces.c`),
/// and only the cache is read from outside.
pub fn add_unreachable<'p>(
    images: impl Iterator<Item = (&'p Path, u32)>,
    warnings: &mut Vec<String>,
) {
    let mut of_pids: BTreeMap<u32, Vec<&Path>> = BTreeMap::new();
    for (image, pid) in images {
        of_pids.entry(pid).or_default().push(image);
    }
    of_pids.retain(|&pid, images| images.first().is_some_and(|image| !sees(pid, image)));
    for (pid, images) in of_pids {
        if add(&images, warnings) {
            warnings.push(format!(
                "perf looks for files in the container of process {pid} while it runs: its code \
                 was also added to perf's build-id cache (~/.debug)"
            ));
        }
    }
}

/// Whether a process that runs sees a file where we do; one that is gone has no view of its own.
fn sees(pid: u32, path: &Path) -> bool {
    let of_process = |what: &str| Path::new("/proc").join(pid.to_string()).join(what);
    let namespace = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino()));
    let ours = namespace(Path::new("/proc/self/ns/mnt"));
    let apart = matches!((namespace(&of_process("ns/mnt")), ours), (Ok(a), Ok(b)) if a != b);
    let inside = of_process("root").join(path.strip_prefix("/").unwrap_or(path));
    !apart || crate::files::same_file(&inside, path)
}
