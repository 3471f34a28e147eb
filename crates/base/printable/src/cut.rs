//! Where bytes that are probably UTF-8 can be cut.

/// The index `at`, or one of the three before it, so that it is not inside a UTF-8 character.
pub(crate) fn boundary(text: &[u8], at: usize) -> usize {
    let between = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (at.saturating_sub(3)..=at).rev().find(between).unwrap_or(at)
}

/// The first `length` bytes of a text, or slightly fewer, so that no character is cut. All of a shorter text.
#[must_use]
pub fn beginning(text: &[u8], length: usize) -> &[u8] {
    text.get(..boundary(text, length)).unwrap_or(text)
}
