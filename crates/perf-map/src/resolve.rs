//! Who is where, when every line may lie over an earlier one.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;

use crate::Entry;

/// A stretch of addresses and the entry it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// First address of the piece, within the entry's code.
    pub address: u64,
    /// Bytes of the piece; never zero.
    pub size: u64,
    /// The entry that owns it. Its own range may be larger: the rest was taken by
    /// younger entries, or is found in another piece.
    pub entry: Entry<'a>,
}

impl Piece<'_> {
    /// The address behind the last byte of the piece.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// Gives every address to the latest entry that covers it: pieces in the order of
/// their addresses, none overlapping another, none empty.
///
/// Later means later in the iterator. An entry that younger ones cover wholly has
/// no piece; one covered in the middle has two. There are fewer than two pieces an
/// entry, and the time is *n* log *n*.
pub fn resolve<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Vec<Piece<'a>> {
    // Age is the position in `codes`; equal starts stay in that order, though
    // nothing depends on it.
    let codes: Vec<Entry<'a>> =
        entries.into_iter().filter(|code| code.end() > code.address).collect();
    let mut starts: Vec<(u64, usize)> =
        codes.iter().enumerate().map(|(age, code)| (code.address, age)).collect();
    starts.sort_unstable();

    let mut pieces: Vec<Piece<'a>> = Vec::new();
    // The entries that began at or before `here`, youngest on top. One that has
    // ended stays until it comes to the top.
    let mut begun: BinaryHeap<(usize, u64)> = BinaryHeap::new();
    let mut starts = starts.into_iter().peekable();
    let mut here = 0;
    loop {
        while let Some(&(_, end)) = begun.peek() {
            if end > here {
                break;
            }
            begun.pop();
        }
        if begun.is_empty() {
            let Some(&(next, _)) = starts.peek() else { break };
            here = next;
        }
        while let Some((_, age)) = starts.next_if(|&(start, _)| start <= here) {
            if let Some(code) = codes.get(age) {
                begun.push((age, code.end()));
            }
        }
        let Some(&(age, end)) = begun.peek() else { break };
        let until = starts.peek().map_or(end, |&(next, _)| next.min(end));
        if let Some(&entry) = codes.get(age) {
            push(&mut pieces, here, until, entry);
        }
        here = until;
    }
    pieces
}

/// Appends `[start, end)`, or lengthens the last piece when it is of the same entry.
fn push<'a>(pieces: &mut Vec<Piece<'a>>, start: u64, end: u64, entry: Entry<'a>) {
    let size = end.saturating_sub(start);
    if size == 0 {
        return;
    }
    match pieces.last_mut() {
        Some(last) if last.end() == start && last.entry == entry => {
            last.size = last.size.saturating_add(size);
        }
        _ => pieces.push(Piece { address: start, size, entry }),
    }
}

/// The piece that covers `address`, out of what [`resolve`] gave.
#[must_use]
pub fn find<'p, 'a>(pieces: &'p [Piece<'a>], address: u64) -> Option<&'p Piece<'a>> {
    let behind = pieces.partition_point(|piece| piece.address <= address);
    let piece = pieces.get(behind.checked_sub(1)?)?;
    (address < piece.end()).then_some(piece)
}
