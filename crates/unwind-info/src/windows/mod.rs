//! What Windows wants to know of frames: UNWIND_INFO (version 1) of x86-64.
//!
//! ```
//! use unwind_info::{Unwind, windows};
//!
//! let mut infos = Vec::new();
//! let pieces = windows::encode(40, &Unwind::FRAME_POINTER, &mut infos)?;
//! assert_eq!(pieces, [windows::Piece { begin: 0, end: 40, info: 0 }]);
//! // `push rbp` is done at 1, `mov rbp, rsp` at 4.
//! assert_eq!(infos, [1, 4, 2, 5, 4, 3, 1, 0x50]);
//! # Ok::<(), unwind_info::Error>(())
//! ```
//!
//! # States and operations
//!
//! A [`Row`] is a state; Windows has the operations by which a prologue led to it, each with the offset behind
//! its instruction, and undoes those that were done. The operations are found from what one row says more than the one
//! before. A row may be the work of several instructions, as long as nobody is to unwind between them.
//!
//! A row that does not add to what was before (registers that were pushed for a call and are popped again, a second way
//! through the code with a frame of its own), or that is too far from the beginning (operations have offsets up to 255),
//! begins a new piece: a RUNTIME_FUNCTION of its own with the whole state as its prologue, of no instructions. Such pieces are not
//! chained: chained information holds addresses, and would have to be made anew for each place; this is the same
//! wherever the code lies.
//!
//! A row that says less of the same frame than the one before is passed over: a register that was read back is taken to be in
//! its place still, as long as the frame is there.
//!
//! # Epilogues
//!
//! Windows finds them by reading instructions: `add rsp, n` or `lea rsp, [frame + n]`, if need be, then as many `pop` as
//! there are, then `ret` or `jmp`. Rows that undo a frame are left out, where they are what an epilogue goes through:
//! the registers that are still saved lie right below the return address, without a gap, and the row lasts no longer
//! than as many `pop` and a `jmp` take. So such rows must be of an epilogue: else say `Rows` in which the
//! frame lasts. A jump from one piece to another is taken for such a `jmp` by whoever walks the stack from that very instruction.
//!
//! # Source
//!
//! "x64 exception handling" in Microsoft's documentation of the x64 ABI conventions.

mod codes;
mod state;

use alloc::vec::Vec;

use self::codes::Prologue;
use self::state::{FIRST, State};
use crate::description::{Row, Unwind};
use crate::error::Error;
use crate::machine::Machine;
use crate::prologue::Prologue as Usual;

/// What a RUNTIME_FUNCTION tells of a part of a code, for which one UNWIND_INFO holds. Its fields are distances from an
/// address that all share, at most 4 GiB below the code and the information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins, in bytes from the code's first byte.
    pub begin: u32,
    /// Where it ends.
    pub end: u32,
    /// Where its UNWIND_INFO stands, in bytes from where [`encode`] began to write. A multiple of 4, as the place of that must be.
    pub info: u32,
}

/// Appends the UNWIND_INFOs of a code for x86-64, and says of which pieces of it they are: ascending, without a gap, and one as a
/// rule. They hold no addresses: wherever code and information lie, they are the same.
///
/// Registers have their numbers of the System V ABI, as everywhere in this crate; `xmm6` to `xmm15`, which are kept by
/// calls on Windows, are 23 to 32, and are saved as wholes of 16 bytes.
///
/// # Errors
/// See [`Error`]: [`Error::Inexpressible`] above all. `out` is then as it was.
pub fn encode(code_size: u64, unwind: &Unwind<'_>, out: &mut Vec<u8>) -> Result<Vec<Piece>, Error> {
    let start = out.len();
    append(code_size, unwind, out).inspect_err(|_| out.truncate(start))
}

fn append(code_size: u64, unwind: &Unwind<'_>, out: &mut Vec<u8>) -> Result<Vec<Piece>, Error> {
    const MACHINE: Machine = Machine::X86_64;
    let size = u32::try_from(code_size).map_err(|_| Error::TooFar)?;
    match unwind {
        Unwind::FramePointer { signed: true, .. } | Unwind::FramePointerAlways { signed: true } => {
            Err(Error::Signed)
        }
        Unwind::FramePointer { prologue, .. } => {
            let rows = Usual::rows(MACHINE, *prologue, false);
            // A code may end within its prologue.
            let within = rows.iter().take_while(|row| row.offset < size).count();
            pieces(size, rows.get(..within).unwrap_or_default(), out)
        }
        Unwind::FramePointerAlways { .. } if size == 0 => Ok(Vec::new()),
        Unwind::FramePointerAlways { .. } => pieces(size, &[Usual::always(MACHINE, false)], out),
        Unwind::Rows(rows) => pieces(size, rows, out),
        Unwind::EhFrame(_) => Err(Error::ReadyAsEntry),
    }
}

fn pieces(size: u32, rows: &[Row<'_>], out: &mut Vec<u8>) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    let start = out.len();
    let mut close = |begin: u32, end: u32, prologue: &Prologue| {
        if begin < end {
            let info = out.len().checked_sub(start).and_then(|info| u32::try_from(info).ok());
            prologue.write(out);
            pieces.push(Piece { begin, end, info: info.ok_or(Error::TooFar)? });
        }
        Ok::<(), Error>(())
    };

    // Where all that is saved has room: a frame register is set as if so much were below it.
    let lowest = rows.iter().flat_map(|row| row.saved).map(|&(_, place)| place).min();
    let mut begin = 0;
    let mut prologue = Prologue::new(lowest.unwrap_or(0));
    let mut state = FIRST;
    // Whether an epilogue was left out: what a prologue does behind it is not of this piece, in which one is looked for
    // behind the last operation alone.
    let mut is_undone = false;
    let mut next = 0;
    for (number, row) in rows.iter().enumerate() {
        if row.offset < next {
            return Err(Error::RowOrder { row: number });
        }
        if row.offset >= size {
            return Err(Error::RowOutside { row: number });
        }
        next = row.offset.saturating_add(1);
        let new = State::of(number, row)?;
        let end = rows.get(number.saturating_add(1)).map_or(size, |row| row.offset);
        if new.is_within(&state) {
            continue;
        }
        if new.is_epilogue_of(&state, end.saturating_sub(row.offset)) {
            is_undone = true;
            continue;
        }
        let at = u8::try_from(row.offset.saturating_sub(begin)).ok().filter(|_| !is_undone);
        if at.is_none_or(|at| prologue.add(at, &state, &new).is_err()) {
            close(begin, row.offset, &prologue)?;
            (begin, is_undone) = (row.offset, false);
            prologue = Prologue::new(lowest.unwrap_or(0));
            let all = prologue.add(0, &FIRST, &new);
            all.map_err(|why| Error::Inexpressible { row: number, why })?;
        }
        state = new;
    }
    close(begin, size, &prologue)?;
    Ok(pieces)
}
