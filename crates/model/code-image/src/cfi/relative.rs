//! One code's `.eh_frame` for a separate position, with addresses relative to their own position.

use fallible::Vec;

use super::tables::UnwindTables;
use crate::code::VisibleCode;
use crate::target::Target;

/// Size of the zero length that ends a section.
const TERMINATOR: usize = 4;

/// Appends what `eh_frame` describes of the visible part of `code`, as entries for the address `at`, without a
/// terminator. What cannot be used is left out.
pub(crate) fn relative(
    target: Target,
    code: &VisibleCode<'_>,
    eh_frame: &[u8],
    at: u64,
    out: &mut Vec<u8>,
) {
    let mut tables = UnwindTables::new(target);
    tables.add(code, eh_frame, |address| address);
    if tables.is_empty() {
        return;
    }
    let (frames, summary) = tables.emit_frames(at);
    if summary.fdes == 0 {
        return;
    }
    let entries = frames.bytes.len().saturating_sub(TERMINATOR);
    out.extend_from_slice(frames.bytes.get(..entries).unwrap_or_default());
}
