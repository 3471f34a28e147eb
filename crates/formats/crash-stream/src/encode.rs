//! Makes the stream, in a crash reporter that reads another process.

use std::ops::Range;

use jitdump::extension::code as code_item;
use jitdump::extension::log::FIRST_CHUNK;
use jitdump::extension::tail;

use crate::error::Error;
use crate::layout::{DUMP_HEADER, HEADER_SIZE, Header, MOST_BYTES, MOST_CODE_BYTES, refers_to};
use crate::words::{u32_at, u64_at};

/// Offset in a group of the code's address.
const ADDRESS: usize = 16;
const ITEM: usize = tail::FIRST_PAYLOAD;

/// A code in a snapshot.
struct Group {
    range: Range<usize>,
    address: u64,
    size: u64,
    is_without_bytes: bool,
}

/// Makes the stream of the live codes in `snapshot` to which one of the `words` refers. `snapshot` is that of a code log: the bytes of
/// [`code_log::Snapshot`](https://docs.rs/code-log), taken while the process is stopped. `words` are those of the stacks and registers:
/// [`stack_words`](crate::stack_words).
///
/// `read_code` reads the machine code at an address, and returns whether all of it was read: codes that are in the log without bytes have
/// their bytes in the stream then.
///
/// # Errors
/// If the snapshot is damaged.
pub fn encode(
    snapshot: &[u8],
    words: impl IntoIterator<Item = u64>,
    mut read_code: impl FnMut(u64, &mut [u8]) -> bool,
) -> Result<Vec<u8>, Error> {
    let groups = groups(snapshot)?;
    let lowest = groups.iter().map(|group| group.address).min().unwrap_or(u64::MAX);
    let highest = groups.iter().map(|group| group.address.saturating_add(group.size)).max();
    let bounds = lowest..=highest.unwrap_or(0);
    let mut words: Vec<u64> = words.into_iter().filter(|word| bounds.contains(word)).collect();
    words.sort_unstable();
    words.dedup();
    let is_referred_to = |group: &&Group| {
        let at = words.partition_point(|word| *word < group.address);
        words.get(at).is_some_and(|word| refers_to(*word, group.address, group.size))
    };
    let mut stream = vec![0; HEADER_SIZE];
    stream.extend_from_slice(snapshot.get(..DUMP_HEADER).unwrap_or_default());
    let mut header = Header::default();
    for group in groups.iter().filter(is_referred_to) {
        stream.extend_from_slice(snapshot.get(group.range.clone()).unwrap_or_default());
        header.codes = header.codes.saturating_add(1);
    }
    let mut left = MOST_BYTES;
    header.dump_size = stream.len().saturating_sub(HEADER_SIZE) as u64;
    for group in groups.iter().filter(is_referred_to).filter(|group| group.is_without_bytes) {
        let mut bytes =
            vec![0; usize::try_from(group.size.min(MOST_CODE_BYTES).min(left)).unwrap_or(0)];
        if bytes.is_empty() || !read_code(group.address, &mut bytes) {
            continue;
        }
        left = left.saturating_sub(bytes.len() as u64);
        stream.extend_from_slice(&group.address.to_ne_bytes());
        stream.extend_from_slice(&(bytes.len() as u64).to_ne_bytes());
        stream.extend_from_slice(&bytes);
        stream.resize(stream.len().next_multiple_of(8), 0);
        header.code_bytes = header.code_bytes.saturating_add(1);
    }
    if let Some(place) = stream.first_chunk_mut() {
        *place = header.to_bytes();
    }
    Ok(stream)
}

/// The codes in a snapshot that are alive.
fn groups(snapshot: &[u8]) -> Result<Vec<Group>, Error> {
    let mut groups = Vec::new();
    let mut at = FIRST_CHUNK;
    let damaged = |at: usize| Error::NotASnapshot { at: at as u64 };
    let is_dump = u32_at(snapshot, 0) == Some(jitdump::MAGIC)
        && u32_at(snapshot, 8) == Some(DUMP_HEADER as u32);
    if !is_dump || snapshot.len() < FIRST_CHUNK {
        return Err(damaged(0));
    }
    while at < snapshot.len() {
        let group = snapshot.get(at..).unwrap_or_default();
        let field = |offset: usize| ITEM.saturating_add(offset);
        let size = u32_at(group, field(code_item::GROUP_SIZE)).ok_or(damaged(at))? as usize;
        let end = at.saturating_add(size);
        let flags = group.get(field(code_item::FLAGS)).ok_or(damaged(at))?;
        let is_alive = u64_at(group, field(code_item::DIED)) == Some(0);
        if size < ITEM.saturating_add(code_item::SIZE) || end > snapshot.len() {
            return Err(damaged(at));
        }
        let places = u64_at(group, ADDRESS).zip(u64_at(group, field(code_item::CODE_SIZE)));
        if let Some((address, size)) = places.filter(|_| is_alive) {
            let is_without_bytes = flags & code_item::WITHOUT_BYTES != 0;
            groups.push(Group { range: at..end, address, size, is_without_bytes });
        }
        at = end;
    }
    Ok(groups)
}
