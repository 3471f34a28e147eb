//! Windows' unwind info: UNWIND_INFO (version 1) of x86-64.
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
//! A [`Row`] is a state. Windows instead has the operations of the prologue that led to it, each with the offset
//! behind its instruction, and undoes those that were executed. The operations are derived from what a row adds to
//! the previous one. A row may be the result of several instructions, if no unwinding occurs between them.
//!
//! A row begins a new piece if it does not extend the previous state (registers that were pushed for a call and are
//! popped again, a second path through the code with its own frame), or if it is too far from the beginning
//! (operations have offsets up to 255). A piece is a separate RUNTIME_FUNCTION with the complete state as its
//! prologue, without instructions. Pieces are not chained: chained info contains addresses, and would have to be
//! encoded again for each position. This info is the same wherever the code is.
//!
//! A row that describes less of the same frame than the previous one is skipped: a register that was restored is
//! assumed to be still in its location, as long as the frame exists.
//!
//! # Epilogues
//!
//! Windows finds them by reading instructions: `add rsp, n` or `lea rsp, [frame + n]` if needed, then any number of
//! `pop`, then `ret` or `jmp`. Rows that undo a frame are omitted if they are states within an epilogue. For this,
//! the registers that are still saved must be directly below the return address, without a gap, and the row must not
//! last longer than the remaining `pop` and a `jmp`. Therefore such rows must belong to an epilogue. If they do not,
//! describe the code with `Rows` in which the frame lasts. An unwinder that starts at a jump from one piece to
//! another takes this jump for the `jmp` of an epilogue.
//!
//! # Source
//!
//! "x64 exception handling" in Microsoft's documentation of the x64 ABI conventions.

mod codes;
mod state;

use alloc::vec::Vec;

use self::codes::Prologue;
use self::state::{FIRST, State};
use crate::error::Error;
use crate::machine::Machine;
use crate::prologue::Prologue as Usual;
use jit_code::{Row, Unwind};

/// The content of a RUNTIME_FUNCTION for a part of a code to which one UNWIND_INFO applies. The fields of a
/// RUNTIME_FUNCTION are distances from a common base address, which is at most 4 GiB below the code and the unwind
/// info.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins, in bytes from the code's first byte.
    pub begin: u32,
    /// Where it ends.
    pub end: u32,
    /// Where its UNWIND_INFO is, in bytes from where [`encode`] began to write. A multiple of 4; the position where
    /// [`encode`] begins must be one too.
    pub info: u32,
}

/// Appends the UNWIND_INFOs of a code for x86-64, and returns the pieces that they apply to: ascending, without gaps,
/// and usually one. They contain no addresses, so they are the same wherever code and unwind info are.
///
/// Registers have their System V ABI numbers, as everywhere in this crate. `xmm6` to `xmm15`, which calls preserve on
/// Windows, are 23 to 32, and are saved as complete 16-byte values.
///
/// # Errors
/// See [`Error`], especially [`Error::Inexpressible`]. After an error, `out` is unchanged. A refused allocation is
/// [`Error::Memory`], and does not abort the process.
pub fn encode(code_size: u64, unwind: &Unwind<'_>, out: &mut Vec<u8>) -> Result<Vec<Piece>, Error> {
    let start = out.len();
    append(code_size, unwind, out).inspect_err(|_| out.truncate(start))
}

fn append(code_size: u64, unwind: &Unwind<'_>, out: &mut Vec<u8>) -> Result<Vec<Piece>, Error> {
    const MACHINE: Machine = Machine::X86_64;
    let size = u32::try_from(code_size).map_err(|_| Error::TooFar)?;
    match unwind {
        Unwind::FramePointer { signed: true, .. }
        | Unwind::FramePointerSaving { signed: true, .. }
        | Unwind::FramePointerAlways { signed: true } => Err(Error::Signed),
        Unwind::FramePointer { prologue, .. } => {
            let rows = Usual::rows(MACHINE, *prologue, false);
            // A code may end within its prologue.
            let within = rows.iter().take_while(|row| row.offset < size).count();
            pieces(size, rows.get(..within).unwrap_or_default(), out)
        }
        Unwind::FramePointerSaving { prologue, saved_from, saved, .. } => {
            let all = Usual::all_saved(MACHINE, saved)?;
            let rows = Usual::rows_saving(MACHINE, (*prologue, false), *saved_from, &all);
            let within = rows.iter().take_while(|row| row.offset < size).count();
            pieces(size, rows.get(..within).unwrap_or_default(), out)
        }
        Unwind::FramePointerAlways { .. } if size == 0 => Ok(Vec::new()),
        Unwind::FramePointerAlways { .. } => pieces(size, &[Usual::always(MACHINE, false)], out),
        Unwind::Rows(rows) => pieces(size, rows, out),
        Unwind::EhFrame(_) => Err(Error::ReadyAsEntry),
        _ => Err(Error::Unsupported),
    }
}

fn pieces(size: u32, rows: &[Row<'_>], out: &mut Vec<u8>) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    let start = out.len();
    let mut close = |begin: u32, end: u32, prologue: &Prologue| {
        if begin < end {
            let info = out.len().checked_sub(start).and_then(|info| u32::try_from(info).ok());
            prologue.write(out)?;
            pieces.try_reserve(1).map_err(|_| Error::Memory)?;
            pieces.push(Piece { begin, end, info: info.ok_or(Error::TooFar)? });
        }
        Ok::<(), Error>(())
    };

    // The lowest location of all saved registers. The frame register is set as if this much were below it.
    let lowest = rows.iter().flat_map(|row| row.saved).map(|&(_, place)| place).min();
    let mut begin = 0;
    let mut prologue = Prologue::new(lowest.unwrap_or(0))?;
    let mut state = FIRST;
    // Whether an epilogue was omitted. What a prologue does behind it does not belong to this piece, because Windows
    // looks for an epilogue only behind the last operation.
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
            prologue.clear();
            let all = prologue.add(0, &FIRST, &new);
            all.map_err(|why| Error::Inexpressible { row: number, why })?;
        }
        state = new;
    }
    close(begin, size, &prologue)?;
    Ok(pieces)
}
