//! Where a recording is written, and what becomes of an earlier one there.
//!
//! Like perf, `record` renames an earlier recording FILE to FILE.old, and deletes the FILE.old before. The images do not move,
//! because a recording refers to its images by absolute paths. Instead, each recording has a folder of its own: FILE.jit, or if that
//! holds the images of another recording, FILE.jit.2 and so on. When FILE.old is deleted, so are its images.
//!
//! Which images a recording refers to is read from its table of build-ids. A recording may come from anywhere, so only files that have the name
//! of an image and lie in such a folder are ever deleted, with the lists of codes beside them; and files that were gone when they were recorded, which are kept
//! there in folders of their own.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use jitscribe_inject::files::{self, code_list};
use jitscribe_inject::output;
use jitscribe_inject::{Recording, SOURCES, without_spelling};

use super::args::{Args, with_suffix};
use crate::inject::GONE;
use crate::text::shell_word;
use crate::{Error, Result, note, text};

/// No more folders are tried.
const FOLDERS: u32 = 1000;

/// Where a recording is written.
#[derive(Debug)]
pub struct Placement {
    /// The folder for the images.
    pub images: PathBuf,
    /// The new name of the recording that is at the place now, if it is to be kept.
    pub old: Option<PathBuf>,
    output: PathBuf,
    /// The images of recordings that are deleted when the new recording is complete.
    obsolete: BTreeSet<PathBuf>,
    /// Folders with images that neither the recording at the place nor the one before refers to.
    strange: Vec<PathBuf>,
}

impl Placement {
    /// Determines the places. An error means that the recording could not be written.
    pub fn of(args: &Args) -> Result<Self> {
        let output = args.output.clone();
        let old = with_suffix(&output, ".old");
        let there = Existing::at(&output)?;
        let before = Existing::at(&old)?;
        if args.force {
            if matches!(there, Existing::Folder | Existing::Special) {
                return Err(Error::Refused(format!(
                    "{}: not a file; remove it, or write elsewhere with -o FILE",
                    text::path(&output)
                )));
            }
        } else {
            refuse_foreign(&output, there, before, &old)?;
        }
        if matches!(there, Existing::Empty) {
            // Nothing is lost, and the new recording finds its place free.
            fs::remove_file(&output).map_err(Error::file(&output))?;
        }
        let keeps = !args.force && matches!(there, Existing::Recording);
        let images = |path: &Path, there| match there {
            Existing::Recording => images_of(path, &output),
            _ => BTreeSet::new(),
        };
        let (current, previous) = (images(&output, there), images(&old, before));
        let (deleted, kept) = match there {
            Existing::None | Existing::Empty => (BTreeSet::new(), previous),
            // FILE is replaced, and FILE.old stays.
            _ if args.force => (current, previous),
            _ => (previous, current),
        };
        let mut strange = Vec::new();
        let images = match &args.image_dir {
            Some(folder) => folder.clone(),
            None => {
                let is_of = |folder: &Path, images: &BTreeSet<PathBuf>| {
                    let folder = resolved(folder);
                    images.iter().any(|image| folder_of(image) == Some(&folder))
                };
                let is_free = |folder: &PathBuf| {
                    let is_used = is_of(folder, &kept);
                    if is_used || is_empty(folder) || args.force {
                        return !is_used;
                    }
                    if !is_of(folder, &deleted) {
                        strange.push(folder.clone());
                    }
                    false
                };
                let mut folders = (1..=FOLDERS).map(|number| folder(&output, number));
                folders.find(is_free).ok_or_else(|| {
                    Error::Refused(format!(
                        "{}: too many folders with code of earlier recordings; remove some, or write \
                         elsewhere with -o FILE",
                        text::path(&with_suffix(&output, ".jit.*"))
                    ))
                })?
            }
        };
        let obsolete = &deleted - &kept;
        Ok(Self { images, old: keeps.then_some(old), output, obsolete, strange })
    }

    /// Deletes the images of the recording that was deleted, after the new one was written. Reports what was renamed and what is
    /// left.
    pub fn finish<'p>(self, written: impl Iterator<Item = &'p Path>) {
        let written: BTreeSet<PathBuf> = written.map(resolved).collect();
        let kept: BTreeSet<PathBuf> = written.iter().filter_map(|image| code_list(image)).collect();
        let mut folders = BTreeSet::new();
        for image in self.obsolete.difference(&written) {
            // It may have been deleted by the user.
            _ = fs::remove_file(image);
            if let Some(list) = code_list(image).filter(|list| !kept.contains(list)) {
                _ = fs::remove_file(list);
            }
            let folder = folder_of(image);
            // Fails if there is anything else in them: first the folder of a file that was gone, then that of all of these.
            let above = image.ancestors().skip(1).take_while(|above| Some(*above) != folder);
            above.for_each(|above| _ = fs::remove_dir(above));
            folders.extend(folder);
        }
        for folder in folders {
            // The sources of scripts are those of the images.
            let sources = folder.join(SOURCES);
            if only_entry(folder).is_some_and(|entry| entry == sources && !sources.is_symlink()) {
                _ = fs::remove_dir_all(sources);
            }
            // Fails if there is anything else in it.
            _ = fs::remove_dir(folder);
        }
        if let Some(old) = &self.old {
            note::say(format_args!("the earlier recording: {}", text::path(old)));
        }
        for folder in self.strange {
            note::say(format_args!(
                "{}: holds code of a recording that is neither {} nor {}; if you have deleted that recording: rm -r {}",
                text::path(&folder),
                text::path(&self.output),
                text::path(&with_suffix(&self.output, ".old")),
                shell_word(&folder),
            ));
        }
    }
}

/// The folder with this number for the images of a recording.
fn folder(output: &Path, number: u32) -> PathBuf {
    match number {
        1 => with_suffix(output, ".jit"),
        _ => with_suffix(output, &format!(".jit.{number}")),
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug)]
enum Existing {
    None,
    /// A file without content, which is replaced as if there was none. perf leaves such files.
    Empty,
    /// A recording of perf.
    Recording,
    /// Any other file.
    Other,
    /// A folder.
    Folder,
    /// Neither a file nor a folder.
    Special,
}

impl Existing {
    fn at(path: &Path) -> Result<Self> {
        let file = match fs::metadata(path) {
            Ok(file) => file,
            // A link to nothing is something.
            Err(_) if path.symlink_metadata().is_ok() => return Ok(Self::Other),
            Err(_) => return Ok(Self::None),
        };
        if file.is_dir() {
            return Ok(Self::Folder);
        }
        if !file.is_file() {
            return Ok(Self::Special);
        }
        if file.len() == 0 {
            return Ok(Self::Empty);
        }
        let mut magic = [0; 8];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
        let is_recording = read.is_ok() && [b"PERFILE2", b"2ELIFREP"].contains(&&magic);
        Ok(if is_recording { Self::Recording } else { Self::Other })
    }
}

/// Rejects a place where anything but a recording would be renamed or deleted.
fn refuse_foreign(output: &Path, there: Existing, before: Existing, old: &Path) -> Result<()> {
    let refused = |path: &Path, what| {
        Err(Error::Refused(format!(
            "{}: already exists{what}, or write elsewhere with -o FILE",
            text::path(path)
        )))
    };
    match there {
        Existing::None | Existing::Empty => Ok(()),
        Existing::Recording => match before {
            Existing::None | Existing::Empty | Existing::Recording => Ok(()),
            _ => refused(old, " and is not a recording; remove it"),
        },
        Existing::Other => refused(output, " and is not a recording; use --force to replace it"),
        Existing::Folder | Existing::Special => refused(output, " and is not a file; remove it"),
    }
}

/// What is in a folder, if it is one thing.
fn only_entry(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?;
    let entry = entries.next()?.ok()?;
    entries.next().is_none().then(|| entry.path())
}

/// Whether there is no such folder, or nothing in it.
fn is_empty(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => folder.symlink_metadata().is_err(),
    }
}

/// The images in folders of the recordings at `output` that the recording at `path` refers to. None if it cannot be read.
fn images_of(path: &Path, output: &Path) -> BTreeSet<PathBuf> {
    let Ok(input) = Recording::input(path) else { return BTreeSet::new() };
    let files = input.features().build_ids(input.endian()).into_iter();
    let images =
        files.map(|file| PathBuf::from(OsString::from_vec(without_spelling(&file.filename))));
    images.filter(|image| is_image(image, output)).collect()
}

/// The folder of an image, or that in which a file is kept that was gone: `FOLDER/gone/NUMBER/NAME`. `None` if the path is that of neither.
fn folder_of(image: &Path) -> Option<&Path> {
    if files::is_image(image.as_os_str().as_bytes()) {
        return image.parent();
    }
    let number = image.parent()?;
    let is_number = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    let gone = number.parent().filter(|_| number.file_name().is_some_and(is_number))?;
    gone.parent().filter(|_| gone.file_name() == Some(OsStr::new(GONE)))
}

/// Whether a path is that of an image in a folder of the recordings at `output`, or of a file that is kept there.
fn is_image(image: &Path, output: &Path) -> bool {
    let Some(folder) = folder_of(image) else { return false };
    let name = |path: &Path| path.file_name().and_then(OsStr::to_str).map(str::to_owned);
    let first = resolved(&with_suffix(output, ".jit"));
    let number = match (name(folder), name(&first)) {
        (Some(folder), Some(first)) => folder.strip_prefix(&first).map(str::to_owned),
        _ => None,
    };
    let is_number = |rest: &str| rest.strip_prefix('.').is_some_and(|it| it.parse::<u32>().is_ok());
    folder.parent() == first.parent()
        && number.is_some_and(|rest| rest.is_empty() || is_number(&rest))
}

/// A path in the form in which recordings have it: absolute, without links in the folder.
fn resolved(path: &Path) -> PathBuf {
    let parent = output::parent(path);
    let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    path.file_name().map_or_else(|| parent.clone(), |name| parent.join(name))
}
