//! The committed files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::case::Case;

/// The folder of the committed files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("files")
}

/// The name of the expected reading of a case.
fn reading_name(case: &Case) -> String {
    format!("{}.json", case.name)
}

/// All files by name.
fn made(cases: &[Case]) -> BTreeMap<String, Vec<u8>> {
    let pair = |case: &Case| {
        [(case.name.clone(), case.file.out.clone()), (reading_name(case), case.text().into_bytes())]
    };
    cases.iter().flat_map(pair).collect()
}

/// Writes all files into a folder, and removes others of their kinds. Returns how many changed.
///
/// # Errors
/// If the folder cannot be written.
pub fn write_files(folder: &Path, cases: &[Case]) -> io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let made = made(cases);
    let mut changed = 0;
    for (name, bytes) in &made {
        let path = folder.join(name);
        if std::fs::read(&path).ok().as_ref() != Some(bytes) {
            let beside = folder.join(format!("{name}.new"));
            std::fs::write(&beside, bytes)?;
            std::fs::rename(&beside, &path)?;
            changed += 1;
        }
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !made.contains_key(&*entry.file_name().to_string_lossy()) {
            std::fs::remove_file(entry.path())?;
            changed += 1;
        }
    }
    Ok(changed)
}

/// The names of files in the folder that are not what this crate makes, are missing, or are too many.
///
/// # Errors
/// If the folder cannot be read.
pub fn check_files(folder: &Path, cases: &[Case]) -> io::Result<Vec<String>> {
    let mut made = made(cases);
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if made.remove(&name) != Some(std::fs::read(entry.path())?) {
            wrong.push(name);
        }
    }
    wrong.extend(made.into_keys());
    Ok(wrong)
}
