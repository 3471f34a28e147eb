//! The writer: lines that every reader of perf maps accepts.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// Replacement for an empty name: perf drops a line without a name.
const NAMELESS: &str = "[unnamed]";

/// perf drops lines whose name is shorter.
const SHORTEST: usize = 3;

/// Appends one line: both numbers in lower-case hexadecimal without `0x`, single blanks, the name as [`safe_name`]
/// returns it, and a newline.
///
/// perf drops names of one or two bytes. Such names are padded with blanks to three bytes;
/// [`entries`](crate::entries) removes the blanks.
///
/// Several threads that append to one file keep their lines intact if they pass each line to one `write` on a
/// descriptor opened with `O_APPEND`.
pub fn push_line(out: &mut Vec<u8>, address: u64, size: u64, name: &[u8]) {
    let name = safe_name(name);
    let mut numbers = String::new();
    // Writing into a String cannot fail.
    let _ = write!(numbers, "{address:x} {size:x} ");
    out.extend_from_slice(numbers.as_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend(core::iter::repeat_n(b' ', SHORTEST.saturating_sub(name.len())));
    out.push(b'\n');
}

/// The result of [`safe_name`] in pieces, without an allocation.
pub fn safe_pieces(name: &[u8]) -> impl Iterator<Item = &str> {
    const BLANKS: [u8; 2] = [b' ', b'\t'];
    let is_text = |byte: &u8| !BLANKS.contains(byte);
    let start = name.iter().position(is_text).unwrap_or(name.len());
    let end = name.iter().rposition(is_text).map_or(start, |last| last.saturating_add(1));
    let name = name.get(start..end).unwrap_or_default();
    let nameless = name.is_empty().then_some(NAMELESS);
    nameless.into_iter().chain(name.utf8_chunks().flat_map(|chunk| {
        let replacement = if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
        let mut rest = chunk.valid();
        let pieces = core::iter::from_fn(move || {
            let mut control = None;
            let at = rest.char_indices().find(|&(_, c)| !printable::is_printable(c)).map_or(
                rest.len(),
                |(at, c)| {
                    control = Some(c.len_utf8());
                    at
                },
            );
            if at > 0 {
                let (piece, behind) = rest.split_at_checked(at)?;
                rest = behind;
                return Some(piece);
            }
            rest = rest.get(control?..)?;
            Some("?")
        });
        pieces.chain([replacement])
    }))
}

/// Makes a name safe for a line. Every character that is not [printable](printable::is_printable) becomes `?`: a
/// newline would end the line, a NUL the name, an escape sequence would reach the terminal, a direction override
/// would make it read backwards. Bytes that are not UTF-8 become U+FFFD. Leading and trailing blanks are removed. An
/// empty name becomes `[unnamed]`.
///
/// A name that is already safe is returned unchanged.
#[must_use]
pub fn safe_name(name: &[u8]) -> Cow<'_, str> {
    let name = match String::from_utf8_lossy(name) {
        Cow::Borrowed(name) => Cow::Borrowed(name.trim_matches([' ', '\t'])),
        Cow::Owned(name) => Cow::Owned(name.trim_matches([' ', '\t']).into()),
    };
    if name.is_empty() {
        Cow::Borrowed(NAMELESS)
    } else if printable::is_safe(name.as_bytes()) {
        name
    } else {
        Cow::Owned(name.chars().map(|c| if printable::is_printable(c) { c } else { '?' }).collect())
    }
}
