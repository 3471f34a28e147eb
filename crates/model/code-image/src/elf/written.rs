//! Which files are images of ours.

use super::headers::{self, BUILD_ID_NOTE, Segment};
use crate::encode::Encoder;
use crate::place::PAGE;
use crate::target::{Endian, Target};

/// Offset of the build-id note: behind the file header and up to eight program headers, in the first page, which
/// readers have loaded.
pub(crate) const NOTE_OFFSET: u64 = 0x200;

/// Size of the beginning of an image, which ends with its build-id. [`build_id_of_image`] needs it.
pub const IMAGE_HEAD: usize = (NOTE_OFFSET + BUILD_ID_NOTE) as usize;

/// The program header for the beginning of the file, which becomes part of the process's memory.
pub(crate) fn head_segment(align: u64) -> Segment {
    Segment {
        kind: headers::PT_LOAD,
        flags: headers::PF_R,
        address: 0,
        file_size: IMAGE_HEAD as u64,
        memory_size: IMAGE_HEAD as u64,
        align,
    }
}

/// The build-id of an image that [`ImageWriter`](crate::ImageWriter) wrote. `head` is the beginning of its file, of
/// [`IMAGE_HEAD`] bytes. `None` for all other files: those that linkers made do not begin with a segment that ends behind the
/// build-id.
///
/// ```
/// use code_image::{Endian, ImageWriter, Target, build_id_of_image};
/// let mut file = std::io::Cursor::new(Vec::new());
/// let target = Target::new(62 /* EM_X86_64 */, Endian::Little);
/// let finished = ImageWriter::new(&mut file, target, 0x1000..0x1004)?.finish(|_size| None)?;
/// assert_eq!(build_id_of_image(file.get_ref()), Some(finished.build_id));
/// assert_eq!(build_id_of_image(b"\x7fELF"), None);
/// # Ok::<(), code_image::Error>(())
/// ```
#[must_use]
pub fn build_id_of_image(head: &[u8]) -> Option<[u8; 20]> {
    /// Magic, class, byte order, version, ABI and padding, type.
    const KIND: usize = 18;
    let is_64 = match head.get(4)? {
        1 => false,
        2 => true,
        _ => return None,
    };
    let endian = match head.get(5)? {
        1 => Endian::Little,
        2 => Endian::Big,
        _ => return None,
    };
    let target = Target { machine: 0, endian, is_64, flags: 0 };
    let mut expected = Encoder::new(target);
    headers::file_header(&mut expected, target, &[head_segment(PAGE)], 0, 0);
    let first_segment = headers::file_header_size(target)..expected.bytes.len();
    let note = expected.bytes.len();
    headers::build_id_note(&mut expected, &[0; 20]);
    let id = expected.bytes.len().checked_sub(20)?;
    let note = expected.bytes.get(note..id)?;
    let at = NOTE_OFFSET as usize;
    let build_id = at.checked_add(note.len())?;
    let is_ours = head.get(..KIND)? == expected.bytes.get(..KIND)?
        && head.get(first_segment.clone())? == expected.bytes.get(first_segment)?
        && head.get(at..build_id)? == note;
    head.get(build_id..)?.first_chunk().copied().filter(|_| is_ours)
}
