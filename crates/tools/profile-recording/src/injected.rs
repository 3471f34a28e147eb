//! Brings the code of JIT compilers into a recording that does not have it yet.

use std::path::{Path, PathBuf};

use jitscribe_inject::{
    Destination, Error, Injector, Output, Progress, Recording, Result, SearchPaths, Sources,
    UnusableFile, Warning,
};
use tempfile::TempDir;

use crate::options::Options;

/// A recording with images.
pub struct Injected {
    /// The same if it has some already, or if there is no code for it; otherwise a copy.
    pub recording: Recording,
    /// The folder of the copy, which has to be kept while the images are used.
    pub folder: Option<TempDir>,
    /// Jitdumps and perf maps of its processes that cannot be used.
    pub unusable: Vec<UnusableFile>,
}

/// Brings the code into a recording.
pub fn injected(
    mut recording: Recording,
    options: &Options<'_>,
    progress: &dyn Fn(Progress),
    warnings: &mut Vec<Warning>,
) -> Result<Injected> {
    let paths = options.paths.clone().unwrap_or_else(|| SearchPaths {
        beside: folder_of(recording.path()),
        recorded_here: recording.is_of_this_machine(),
        ..SearchPaths::default()
    });
    // The injector reports what it finds.
    let found = Sources::find(&recording, &paths, options.files, &mut Vec::new());
    if found.list().is_empty() || recording.image_paths().next().is_some() {
        let unusable = found.unusable().to_vec();
        return Ok(Injected { recording, folder: None, unusable });
    }
    drop(found);
    let folder = tempfile::Builder::new().prefix("jitscribe-").tempdir();
    let parent = std::env::temp_dir();
    let folder = folder.map_err(|source| Error::File { path: parent, source })?;
    let path = folder.path().join("perf.data");
    let injector = Injector::new(paths)
        .files(options.files)
        .sources(options.sources.clone())
        .progress(progress);
    let output = Output::create(&path, false)?;
    let mut report = injector.inject(&mut recording, Destination::File(output))?;
    // The recording's own are reported already.
    let own = usize::from(recording.warning().is_some());
    // What `perf inject --jit` did is read as it is.
    let of_interest = |warning: &Warning| !matches!(warning, Warning::AfterPerfInject { .. });
    warnings.extend(report.warnings.into_iter().skip(own).filter(of_interest));
    let of_processes = report.unnamed.iter_mut();
    let unusable = of_processes.flat_map(|process| std::mem::take(&mut process.unusable)).collect();
    if report.images.is_empty() {
        return Ok(Injected { recording, folder: None, unusable });
    }
    let recording = Recording::open(&path, progress)?;
    Ok(Injected { recording, folder: Some(folder), unusable })
}

fn folder_of(path: &Path) -> Option<PathBuf> {
    if path.as_os_str() == "-" {
        return None;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.map_or_else(|| PathBuf::from("."), Path::to_owned))
}
