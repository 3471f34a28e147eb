//! Images of codes that were asked for, by build-id in a folder, where debuginfod and debuggers find them.
//!
//! [`code_agent::Images`] decides which are kept; [`folder`] has the files, and [`writer`] writes them.

mod folder;
mod writer;

use std::path::{Path, PathBuf};

use code_agent::Images;

use self::folder::Folder;
use self::writer::{Done, What, Writer};
use crate::{Error, Result, note, text};

pub use self::folder::create;

/// After a failure, it is tried again after so many nanoseconds.
const PAUSE: u64 = 60_000_000_000;

/// Keeps the folder as the list of images says.
#[derive(Debug)]
pub struct KeptImages {
    writer: Writer,
    path: PathBuf,
    /// When images are made again; `None` while they are.
    resumes: Option<u64>,
    /// Whether a failure was reported, and nothing was written since.
    is_reported: bool,
}

/// Opens the folder, which may have this many MiB, and lists what is there. Privileges are not needed.
///
/// # Errors
/// If the folder cannot be used.
pub fn open(folder: &Path, mebibytes: u64) -> Result<(KeptImages, Images)> {
    let most = mebibytes.checked_mul(1 << 20).filter(|most| *most > 0).ok_or_else(|| {
        Error::Usage("--images-limit takes a number of MiB, at least 1".to_owned())
    })?;
    let folder = Folder::open(folder)?;
    let path = folder.path().to_owned();
    let mut images = Images::new(most);
    for found in folder.images()? {
        images.found(found.id, found.size);
    }
    let (number, bytes) = images.size();
    note::say(format_args!(
        "images: {}: {number} with {} of {mebibytes} MiB",
        text::path(&path),
        bytes.div_ceil(1 << 20)
    ));
    let writer = Writer::start(folder)?;
    Ok((KeptImages { writer, path, resumes: None, is_reported: false }, images))
}

impl KeptImages {
    /// Has changes of the list made in the folder, and notes what became of earlier ones.
    pub fn exchange(&mut self, images: &mut Images, now: u64) {
        let all: Vec<Done> = self.writer.done().collect();
        for done in all {
            let (id, size) = (done.id, done.size);
            match done.what {
                What::Written(Ok(())) => {
                    images.written(id, size);
                    if std::mem::take(&mut self.is_reported) {
                        note::say(format_args!(
                            "images: written again in {}",
                            text::path(&self.path)
                        ));
                    }
                    continue;
                }
                What::Written(Err(error)) => {
                    images.failed(id, size);
                    self.report(&error, "written");
                }
                What::NotRemoved(error) => {
                    images.not_removed(id, size);
                    self.report(&error, "removed");
                }
            }
            self.resumes = Some(now.saturating_add(PAUSE));
        }
        if self.resumes.is_some_and(|resumes| resumes <= now) {
            self.resumes = None;
            images.resume();
        }
        for change in images.take_changes() {
            self.writer.pass(change);
        }
    }

    fn report(&mut self, error: &std::io::Error, what: &str) {
        if !std::mem::replace(&mut self.is_reported, true) {
            note::warning(format_args!(
                "images cannot be {what} in {}: {error}; answers name no new ones, and it is tried again every minute. \
                 Free space there, or restart with a smaller --images-limit",
                text::path(&self.path)
            ));
        }
    }

    /// Waits until all images are written that answers have named.
    pub fn finish(mut self, images: &mut Images, now: u64) {
        self.exchange(images, now);
        self.writer.finish();
    }
}
