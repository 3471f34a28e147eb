//! Which line of the file owns which addresses.
//!
//! The pieces never overlap, as the lines in the file never do: a line that is loaded over is
//! given less room, or none, where it stands. So every reader finds the latest code, whichever
//! of two overlapping lines it would have believed.

use std::collections::BTreeMap;
use std::ops::Range;

/// A stretch of addresses that one line of the file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes of code; never zero.
    pub size: u64,
    /// Where its line begins in the file.
    pub offset: u64,
    /// Bytes of the line, its newline included.
    pub length: u16,
    /// Whether the code still lives. The line of dead code stays until its addresses are used
    /// again, or until the file grows too long: samples taken in it get their name from there.
    pub live: bool,
}

/// A code as it was loaded: address and size.
type Whole = (u64, u64);

/// The pieces of the address space by their first address.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pieces: BTreeMap<u64, Piece>,
    /// The live pieces that are not all of their code, since other code lies inside of it.
    parts: BTreeMap<u64, Whole>,
    live_bytes: u64,
}

/// A line that must say another size; 0 makes it say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resize {
    pub address: u64,
    pub offset: u64,
    pub from: u64,
    pub to: u64,
}

/// What is left of a live code behind new code that was put into it. It needs a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    pub address: u64,
    pub size: u64,
    /// The line that has its name, and where that line says the code is.
    pub named_by: (u64, Piece),
    whole: Whole,
}

/// What must be done to the file so that new code finds its addresses free.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub resizes: Vec<Resize>,
    pub tail: Option<Tail>,
}

impl Table {
    /// Bytes of the lines of live code.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// All pieces, by address.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Piece)> + '_ {
        self.pieces.iter().map(|(&address, &piece)| (address, piece))
    }

    /// Takes the addresses away from whoever has them.
    ///
    /// A code whose first byte is among them is dead: its memory was used again. So is one that
    /// begins before them and ends inside of them. One that encloses them lives on around them,
    /// as a blob of stubs does whose stubs are told of one by one.
    pub fn make_room(&mut self, range: &Range<u64>) -> Room {
        let mut room = Room::default();
        // From the last one backwards: most often a single look says that all is free.
        while let Some((&start, &piece)) = self.pieces.range(..range.end).next_back()
            && start + piece.size > range.start
        {
            self.cut(start, piece, range, &mut room);
        }
        room
    }

    /// Cuts `range` out of one piece that reaches into it.
    fn cut(&mut self, start: u64, piece: Piece, range: &Range<u64>, room: &mut Room) {
        let whole = self.parts.get(&start).copied().unwrap_or((start, piece.size));
        let lives = piece.live && whole.0 < range.start && range.end <= whole.0 + whole.1;
        if piece.live && !lives {
            self.kill(start, whole);
        }
        let kept = range.start.saturating_sub(start);
        room.resizes.push(Resize {
            address: start,
            offset: piece.offset,
            from: piece.size,
            to: kept,
        });
        if let Some(shrunk) = self.pieces.get_mut(&start).filter(|_| kept > 0) {
            shrunk.size = kept;
            if lives {
                self.parts.insert(start, whole);
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
            room.tail = Some(Tail { address, size, named_by: (start, piece), whole });
        }
    }

    /// Puts a new code's line in, for which [`make_room`](Self::make_room) made room.
    pub fn insert(&mut self, address: u64, piece: Piece) {
        if piece.live {
            self.live_bytes += u64::from(piece.length);
        }
        self.pieces.insert(address, piece);
    }

    /// Puts in the line that was written for a tail.
    pub fn insert_tail(&mut self, tail: &Tail, offset: u64, length: u16) {
        self.insert(tail.address, Piece { size: tail.size, offset, length, live: true });
        self.parts.insert(tail.address, tail.whole);
    }

    /// The code loaded with exactly this address and size is dead. The answer is a line with
    /// its name and where that line's piece begins; `None` if no such code lives.
    ///
    /// The size tells a code from the next one at its address, whose load may be heard of
    /// before the end of the one before it.
    pub fn unload(&mut self, address: u64, size: u64) -> Option<(u64, Piece)> {
        let whole = (address, size);
        let found = match self.pieces.get(&address) {
            Some(piece)
                if piece.live && piece.size == size && !self.parts.contains_key(&address) =>
            {
                Some(address)
            }
            _ => self.parts_of(whole).next(),
        }?;
        let piece = *self.pieces.get(&found)?;
        self.kill(found, whole);
        Some((found, piece))
    }

    /// Marks all pieces of a code dead, of which one begins at `start`.
    fn kill(&mut self, start: u64, whole: Whole) {
        if !self.parts.contains_key(&start) {
            self.bury(start);
            return;
        }
        let parts: Vec<u64> = self.parts_of(whole).collect();
        for part in parts {
            self.parts.remove(&part);
            self.bury(part);
        }
    }

    fn bury(&mut self, start: u64) {
        if let Some(piece) = self.pieces.get_mut(&start) {
            piece.live = false;
            self.live_bytes -= u64::from(piece.length);
        }
    }

    fn parts_of(&self, whole: Whole) -> impl Iterator<Item = u64> + '_ {
        let within = whole.0..whole.0.saturating_add(whole.1);
        let parts = self.parts.range(within);
        parts.filter(move |&(_, of)| *of == whole).map(|(&start, _)| start)
    }

    /// Keeps only the pieces that were written anew, where they are now. `moved` is in the order
    /// of addresses.
    pub fn relocate(&mut self, moved: Vec<(u64, Piece)>) {
        self.live_bytes =
            moved.iter().filter(|(_, piece)| piece.live).map(|(_, p)| u64::from(p.length)).sum();
        // Parts are live, and what is live is always among those written anew.
        self.pieces = moved.into_iter().collect();
    }
}
