//! Maps addresses to the lines of the file.
//!
//! Pieces never overlap, because lines in the file never do: when code is loaded over a line, that
//! line's size is reduced in place, or set to 0. So every reader finds the latest code, whichever
//! of two overlapping lines it would prefer.

use std::ops::Range;

use fallible::{Map, Vec};

/// A range of addresses that one line of the file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Size of the code in bytes; never zero.
    pub size: u64,
    /// Offset of its line in the file.
    pub offset: u64,
    /// Length of the line in bytes, including the newline.
    pub length: u16,
    /// Whether the code is alive. The line of dead code stays until its addresses are reused, or
    /// until the file gets too large: samples taken in it get their name from there.
    pub live: bool,
}

/// A code as it was loaded: address and size.
type CodeRange = (u64, u64);

/// The pieces of the address space, by their first address.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pieces: Map<u64, Piece>,
    /// Live pieces that are only a part of their code, because other code is inside of it.
    parts: Map<u64, CodeRange>,
    live_bytes: u64,
}

/// A line whose size must be changed; 0 disables it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resize {
    pub address: u64,
    pub offset: u64,
    pub from: u64,
    pub to: u64,
}

/// The rest of a live code behind new code that was loaded into it. It needs a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    pub address: u64,
    pub size: u64,
    /// The line that has its name, and its piece.
    pub named_by: (u64, Piece),
    code_range: CodeRange,
}

/// The changes to the file that free the addresses for new code.
#[derive(Debug, Default)]
pub(crate) struct RangeChanges {
    pub resizes: Vec<Resize>,
    pub tail: Option<Tail>,
}

impl Table {
    /// Number of bytes in the lines of live code.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// All pieces, by address.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Piece)> + '_ {
        self.pieces.iter().map(|(&address, &piece)| (address, piece))
    }

    /// The pieces that overlap with a range.
    pub fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        let (start, mut end) = (range.start, range.end);
        std::iter::from_fn(move || {
            let (&at, &piece) = self.pieces.last_below(&end)?;
            end = at;
            (at + piece.size > start).then_some(piece)
        })
    }

    /// Sets where the line of the piece at `address` is.
    pub fn set_offset(&mut self, address: u64, offset: u64) {
        if let Some(piece) = self.pieces.get_mut(&address) {
            piece.offset = offset;
        }
    }

    /// Frees a range of addresses.
    ///
    /// A code whose first byte is in the range is dead: its memory was reused. So is a code that
    /// begins before the range and ends in it. A code that encloses the range stays alive around
    /// it, like a blob of stubs whose stubs are announced one by one.
    pub fn free_range(&mut self, range: &Range<u64>) -> RangeChanges {
        let mut changes = RangeChanges::default();
        // From the last one backwards: most often a single lookup shows that everything is free.
        while let Some((&start, &piece)) = self.pieces.last_below(&range.end)
            && start + piece.size > range.start
        {
            self.cut(start, piece, range, &mut changes);
        }
        changes
    }

    /// Cuts `range` out of a piece that overlaps with it.
    fn cut(&mut self, start: u64, piece: Piece, range: &Range<u64>, changes: &mut RangeChanges) {
        let code_range = self.parts.get(&start).copied().unwrap_or((start, piece.size));
        let lives =
            piece.live && code_range.0 < range.start && range.end <= code_range.0 + code_range.1;
        if piece.live && !lives {
            self.mark_code_dead(start, code_range);
        }
        let kept = range.start.saturating_sub(start);
        changes.resizes.push(Resize {
            address: start,
            offset: piece.offset,
            from: piece.size,
            to: kept,
        });
        if let Some(shrunk) = self.pieces.get_mut(&start).filter(|_| kept > 0) {
            shrunk.size = kept;
            if lives {
                self.parts.insert(start, code_range);
            }
        } else {
            self.pieces.remove(&start);
            if lives {
                self.parts.remove(&start);
                self.live_bytes -= u64::from(piece.length);
            }
        }
        let end = start + piece.size;
        if lives && end > range.end {
            let (address, size) = (range.end, end - range.end);
            changes.tail = Some(Tail { address, size, named_by: (start, piece), code_range });
        }
    }

    /// Inserts a new code's line, for which [`free_range`](Self::make_room) freed the addresses.
    pub fn insert(&mut self, address: u64, piece: Piece) {
        if piece.live {
            self.live_bytes += u64::from(piece.length);
        }
        self.pieces.insert(address, piece);
    }

    /// Inserts the line that was written for a tail.
    pub fn insert_tail(&mut self, tail: &Tail, offset: u64, length: u16) {
        self.insert(tail.address, Piece { size: tail.size, offset, length, live: true });
        self.parts.insert(tail.address, tail.code_range);
    }

    /// Marks the code with exactly this address and size as dead. Returns a line with its name and
    /// the start of that line's piece; `None` if no such code is alive.
    ///
    /// The size distinguishes a code from the next one at its address, whose load may be announced
    /// before the unload of the previous one.
    pub fn unload(&mut self, address: u64, size: u64) -> Option<(u64, Piece)> {
        let code_range = (address, size);
        let found = match self.pieces.get(&address) {
            Some(piece)
                if piece.live && piece.size == size && !self.parts.contains_key(&address) =>
            {
                Some(address)
            }
            _ => self.parts_of(code_range).next(),
        }?;
        let piece = *self.pieces.get(&found)?;
        self.mark_code_dead(found, code_range);
        Some((found, piece))
    }

    /// Marks all pieces of a code as dead; one of them begins at `start`.
    fn mark_code_dead(&mut self, start: u64, code_range: CodeRange) {
        if !self.parts.contains_key(&start) {
            self.mark_piece_dead(start);
            return;
        }
        let parts: Vec<u64> = self.parts_of(code_range).collect();
        for part in parts {
            self.parts.remove(&part);
            self.mark_piece_dead(part);
        }
    }

    fn mark_piece_dead(&mut self, start: u64) {
        if let Some(piece) = self.pieces.get_mut(&start) {
            piece.live = false;
            self.live_bytes -= u64::from(piece.length);
        }
    }

    fn parts_of(&self, code_range: CodeRange) -> impl Iterator<Item = u64> + '_ {
        let within = code_range.0..code_range.0.saturating_add(code_range.1);
        let parts = self.parts.range(within);
        parts.filter(move |&(_, of)| *of == code_range).map(|(&start, _)| start)
    }

    /// Keeps only the pieces that were rewritten, with their new offsets. `moved` is ordered by
    /// address.
    pub fn relocate(&mut self, moved: Vec<(u64, Piece)>) {
        self.live_bytes =
            moved.iter().filter(|(_, piece)| piece.live).map(|(_, p)| u64::from(p.length)).sum();
        // Parts are live, and everything that is live was rewritten.
        self.pieces = moved.into_iter().collect();
    }
}
