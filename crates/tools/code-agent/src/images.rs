//! Which images are kept, and which make way for others.

use std::collections::{BTreeMap, HashMap};

use crate::access::Peer;
use crate::build_id::BuildId;
use crate::image::Image;
use crate::protocol::ImagePlace;

/// What is to be done with the folder of images, in this order.
#[derive(Debug, PartialEq, Eq)]
pub enum ImageChange {
    /// Write an image. [`Images::written`] or [`Images::failed`] takes the result.
    Write {
        /// Its build-id.
        id: BuildId,
        /// The file.
        content: Vec<u8>,
    },
    /// Remove an image.
    Remove(BuildId),
}

/// What was done with images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageCounts {
    /// Images that were written.
    pub written: u64,
    /// Images that were removed because of the limit.
    pub removed: u64,
    /// Images that could not be written or removed.
    pub failed: u64,
    /// Images that were not made: too large, or too many waited to be written.
    pub left_out: u64,
}

/// The images in a folder, within a number of bytes: those that were asked for least recently make way. It is the list of
/// the files; the caller does what [`Self::take_changes`] says.
#[derive(Debug, Default)]
pub struct Images {
    /// The most bytes of all images. With 0, none are made.
    most: u64,
    known: HashMap<BuildId, Known>,
    by_owner: HashMap<Option<u32>, Owned>,
    bytes: u64,
    /// Numbers images in the order in which they were used.
    next: u64,
    /// Bytes of those that are not written yet.
    waiting: u64,
    /// Whether the present answer would name one of these.
    is_awaited: bool,
    changes: Vec<ImageChange>,
    is_stopped: bool,
    counts: ImageCounts,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    order: u64,
    size: u64,
    /// The user of the process; `None` for images of an earlier run.
    owner: Option<u32>,
    /// Whether it is in the folder. No other is named: the disk may be full.
    is_written: bool,
}

#[derive(Debug, Default)]
struct Owned {
    by_order: BTreeMap<u64, BuildId>,
    bytes: u64,
}

/// The most bytes that wait to be written. While there are more, no images are made.
const MOST_WAITING: u64 = 64 << 20;

/// A file takes whole blocks.
const BLOCK: u64 = 4096;

/// One part in this many belongs to one user other than root at most, and one image is no larger.
const SHARES: u64 = 4;

/// The image of a code that was described.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CodeImage {
    /// It was not made yet.
    #[default]
    NotMade,
    /// There can be none.
    None,
    /// It was made.
    Made { id: BuildId, address: u64 },
}

impl Images {
    /// A folder without images, which may have this many bytes.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self { most, ..Self::default() }
    }

    /// Notes an image that is there from an earlier run. The images are passed in the order in which they were written.
    pub fn found(&mut self, id: BuildId, size: u64) {
        self.insert(id, size, None, true);
        self.make_room(None);
    }

    /// An answer begins, whose images [may have to be waited for](Self::is_awaited).
    pub(crate) fn begin_answer(&mut self) {
        self.is_awaited = false;
    }

    /// Whether the answer leaves out an image that is about to be written.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// What is to be done since the last call.
    pub fn take_changes(&mut self) -> Vec<ImageChange> {
        std::mem::take(&mut self.changes)
    }

    /// Notes that an image of this many bytes is in the folder.
    pub fn written(&mut self, id: BuildId, size: u64) {
        self.waiting = self.waiting.saturating_sub(size);
        self.counts.written += 1;
        match self.known.get_mut(&id) {
            Some(known) => known.is_written = true,
            // It had to make way while it waited.
            None => self.changes.push(ImageChange::Remove(id)),
        }
    }

    /// Notes that an image of this many bytes could not be written. No more are made until [`Self::resume`].
    pub fn failed(&mut self, id: BuildId, size: u64) {
        self.waiting = self.waiting.saturating_sub(size);
        self.counts.failed += 1;
        self.forget(id);
        self.is_stopped = true;
    }

    /// Notes that an image of this many bytes could not be removed, and is still there.
    pub fn not_removed(&mut self, id: BuildId, size: u64) {
        self.counts.failed += 1;
        if !self.known.contains_key(&id) {
            self.insert(id, size, None, true);
        }
        self.is_stopped = true;
    }

    /// Makes images again after a failure.
    pub fn resume(&mut self) {
        self.is_stopped = false;
    }

    /// What was done.
    #[must_use]
    pub fn counts(&self) -> ImageCounts {
        self.counts
    }

    /// Number of images, and of their bytes.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        (self.known.len() as u64, self.bytes)
    }

    /// For the images of a process of `owner` that `peer` asks about.
    ///
    /// The folder is for all, and so are images in it: they are made for those who may ask about all processes.
    pub(crate) fn of_process(&mut self, owner: u32, peer: Peer) -> ImagesOfProcess<'_> {
        let images = Some(self).filter(|images| images.most > 0 && peer.sees_all);
        ImagesOfProcess { images, owner }
    }

    fn insert(&mut self, id: BuildId, size: u64, owner: Option<u32>, is_written: bool) {
        self.forget(id);
        let size = size.next_multiple_of(BLOCK);
        let order = self.next;
        self.next += 1;
        self.known.insert(id, Known { order, size, owner, is_written });
        let owned = self.by_owner.entry(owner).or_default();
        owned.by_order.insert(order, id);
        owned.bytes = owned.bytes.saturating_add(size);
        self.bytes = self.bytes.saturating_add(size);
    }

    fn forget(&mut self, id: BuildId) {
        let Some(Known { order, size, owner, .. }) = self.known.remove(&id) else { return };
        self.bytes = self.bytes.saturating_sub(size);
        if let Some(owned) = self.by_owner.get_mut(&owner) {
            owned.by_order.remove(&order);
            owned.bytes = owned.bytes.saturating_sub(size);
            if owned.by_order.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
    }

    /// Removes the oldest images until those of `owner` have at most their share, and all the most there may be.
    fn make_room(&mut self, owner: Option<u32>) {
        if owner.is_some_and(|owner| owner != 0) {
            while let Some(owned) = self.by_owner.get(&owner)
                && owned.bytes > self.most / SHARES
                && let Some((_, &oldest)) = owned.by_order.first_key_value()
            {
                self.remove(oldest);
            }
        }
        while self.bytes > self.most {
            let oldest = self.by_owner.values().filter_map(|it| it.by_order.first_key_value());
            let Some((_, &oldest)) = oldest.min() else { break };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, id: BuildId) {
        self.forget(id);
        self.counts.removed += 1;
        self.changes.push(ImageChange::Remove(id));
    }

    /// Notes that an image is used. `false` if there is none.
    fn touch(&mut self, id: BuildId) -> bool {
        let order = self.next;
        let Some(known) = self.known.get_mut(&id) else { return false };
        self.next += 1;
        let before = std::mem::replace(&mut known.order, order);
        if let Some(owned) = self.by_owner.get_mut(&known.owner) {
            owned.by_order.remove(&before);
            owned.by_order.insert(order, id);
        }
        true
    }

    fn is_making(&self) -> bool {
        !self.is_stopped && self.waiting < MOST_WAITING
    }

    fn make(&mut self, owner: u32, dump: &[u8]) -> CodeImage {
        if !self.is_making() {
            self.counts.left_out += 1;
            return CodeImage::NotMade;
        }
        let Some(Image { id, address, content }) = Image::of(dump) else { return CodeImage::None };
        let size = content.len() as u64;
        if size.next_multiple_of(BLOCK) > self.most / SHARES {
            self.counts.left_out += 1;
            return CodeImage::None;
        }
        if !self.touch(id) {
            self.waiting = self.waiting.saturating_add(size);
            self.insert(id, size, Some(owner), false);
            // The others go first, so that the folder never has more than it may.
            self.make_room(Some(owner));
            self.changes.push(ImageChange::Write { id, content });
        }
        CodeImage::Made { id, address }
    }
}

/// The images of one process, for one who asks. Without images it does nothing.
#[derive(Debug)]
pub(crate) struct ImagesOfProcess<'a> {
    images: Option<&'a mut Images>,
    owner: u32,
}

impl ImagesOfProcess<'_> {
    /// Whether the code need not be read for its image.
    pub(crate) fn is_settled(&self, image: CodeImage) -> bool {
        let Some(images) = &self.images else { return true };
        match image {
            CodeImage::None => true,
            CodeImage::NotMade => !images.is_making(),
            CodeImage::Made { id, .. } => images.known.contains_key(&id) || !images.is_making(),
        }
    }

    /// Makes the image of the code that a dump has, unless it is there.
    pub(crate) fn make(&mut self, dump: &[u8]) -> CodeImage {
        let Some(images) = &mut self.images else { return CodeImage::NotMade };
        images.make(self.owner, dump)
    }

    /// What is answered of an image.
    pub(crate) fn place(&mut self, image: CodeImage) -> Option<ImagePlace> {
        let CodeImage::Made { id, address } = image else { return None };
        let images = self.images.as_mut()?;
        if !images.touch(id) {
            return None;
        }
        if !images.known.get(&id)?.is_written {
            images.is_awaited = true;
            return None;
        }
        Some(ImagePlace { build_id: id.to_string(), address })
    }
}
