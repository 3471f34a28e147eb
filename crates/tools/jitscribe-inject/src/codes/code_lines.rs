//! The functions and lines of a code, with files as this crate's images name them.

use code_image::jitdump::Position;
use code_index::{CodeLines, SourcePlace};
use jitdump::CodeLoad;

use super::source_lines::{CachedResolver, source_name};

/// The lines of a code named `name` that begins at `start`. Addresses are adjusted if the code was moved.
#[must_use]
pub fn decoded_lines<'p>(name: &'p [u8], start: u64, load: Option<&CodeLoad<'p>>) -> CodeLines {
    CodeLines::new(name, start, load, None, |place| (source_name(place.file), place.line))
}

/// The same with the positions in the user's sources.
#[must_use]
pub fn resolved_lines<'p, 'a: 'p>(
    name: &'p [u8],
    start: u64,
    load: Option<&CodeLoad<'p>>,
    sources: &CachedResolver<'a>,
) -> CodeLines {
    let whole = sources.whole(name, load).map(|Position { file, line, .. }| (file.to_vec(), line));
    let whole = whole.as_ref().map(|(file, line)| (file.as_slice(), *line));
    CodeLines::new(name, start, load, whole, |SourcePlace { file, line, column }| {
        let Position { file, line, .. } = sources.place(Position { file, line, column });
        (file.into(), line)
    })
}
