//! Which code is at an address, when every line may overlap an earlier one.
//!
//! This module handles a single map, without allocations that cannot be refused. The command uses `code_timeline`,
//! which also handles other sources, timestamps and moves. A test in that crate checks that the two agree.

use alloc::alloc::{Layout, handle_alloc_error};
use alloc::collections::{BinaryHeap, TryReserveError};
use alloc::vec::Vec;

use crate::Entry;

/// A range of addresses and the entry that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// First address of the piece, within the entry's code.
    pub address: u64,
    /// Size of the piece in bytes; never zero.
    pub size: u64,
    /// The entry that owns it. Its own range may be larger: the rest was replaced by newer entries, or is in another
    /// piece.
    pub entry: Entry<'a>,
}

impl Piece<'_> {
    /// The address behind the last byte of the piece.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// Assigns every address to the latest entry that covers it. Returns pieces sorted by address, without overlaps and
/// without empty pieces.
///
/// "Latest" refers to the order of the iterator. An entry that newer ones cover completely has no piece; one that is
/// covered in the middle has two. There are fewer than two pieces per entry, and the time is *n* log *n*.
pub fn resolve<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Vec<Piece<'a>> {
    let entries: Vec<Entry<'a>> = entries.into_iter().collect();
    let pieces = try_resolve(&entries);
    pieces.unwrap_or_else(|_| handle_alloc_error(Layout::for_value(&*entries)))
}

/// Like [`resolve`], for callers that must not abort when memory is exhausted.
///
/// # Errors
/// An allocation was refused.
pub fn try_resolve<'a>(codes: &[Entry<'a>]) -> Result<Vec<Piece<'a>>, TryReserveError> {
    // The age is the position in `codes`. Equal starts stay in this order, though nothing depends on it.
    let mut starts: Vec<(u64, usize)> = Vec::new();
    starts.try_reserve_exact(codes.len())?;
    let all = codes.iter().enumerate().filter(|(_, code)| code.end() > code.address);
    starts.extend(all.map(|(age, code)| (code.address, age)));
    starts.sort_unstable();

    // The maximum number: nothing below allocates.
    let mut pieces: Vec<Piece<'a>> = Vec::new();
    pieces.try_reserve_exact(starts.len().saturating_mul(2))?;
    // The entries that began at or before `here`, newest on top. An entry that has ended stays until it reaches the
    // top.
    let mut begun: BinaryHeap<(usize, u64)> = BinaryHeap::new();
    begun.try_reserve_exact(starts.len())?;
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
    Ok(pieces)
}

/// Appends `[start, end)`, or extends the last piece if it is of the same entry.
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

/// The piece that covers `address`, in the result of [`resolve`].
#[must_use]
pub fn find<'p, 'a>(pieces: &'p [Piece<'a>], address: u64) -> Option<&'p Piece<'a>> {
    let behind = pieces.partition_point(|piece| piece.address <= address);
    let piece = pieces.get(behind.checked_sub(1)?)?;
    (address < piece.end()).then_some(piece)
}
