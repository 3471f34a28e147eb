//! Unwind info, as described in C.
#![allow(unsafe_code)]

use smallvec::SmallVec;

use crate::outcome::Failure;
use crate::raw;

/// The form of the unwind info.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindKind {
    /// None. Profilers that walk frame pointers may still get through. Every number that is not in this list means
    /// this.
    None = 0,
    /// The usual prologue at `prologue`, and a frame pointer from there to the end. x86-64: `push rbp; mov rbp, rsp`.
    /// aarch64: `stp x29, x30, [sp, -16]!; mov x29, sp`. Correct at each instruction except in the epilogue. If the code
    /// changes other registers that a call must preserve (x86-64: rbx and r12 to r15), say with `rows` where it saves them.
    /// Without `rows`, unwinders in the process find what is saved directly behind the prologue, and take the rest to be
    /// unchanged; debuggers do not show these registers for its callers.
    FramePointer = 1,
    /// A frame pointer that is valid at each instruction: for code that runs in a frame which other code has set up.
    FramePointerAlways = 2,
    /// `rows`, which are correct at each instruction.
    Rows = 3,
    /// `eh_frame`.
    EhFrame = 4,
}

/// Bits of jitscribe_unwind.flags.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindFlag {
    /// aarch64, frame pointers: the saved return address is signed, with `paciasp`.
    Signed = 1,
}

/// Bits of jitscribe_row.flags.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFlag {
    /// aarch64: the return address is signed, with the CFA as modifier (`paciasp`).
    Signed = 1,
}

/// Where the caller's value of a register is saved.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Saved {
    /// Offset from the CFA in bytes: a multiple of 8, usually negative.
    pub offset: i32,
    /// The register's DWARF number.
    pub reg: u16,
    /// Reserved: set to 0.
    pub reserved: u16,
}

/// The state of the frame from `offset` to the next row's offset.
///
/// The CFA is DWARF's canonical frame address: the value of the stack pointer before the call (on x86-64, before the
/// call pushed its return address). Registers have the DWARF numbers that the machine's ABI defines: x86-64 rbx 3,
/// rbp 6, rsp 7, r12 to r15 12 to 15; aarch64 x0 to x30 0 to 30, sp 31.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Offset in the code of the first instruction for which the row is valid. The row after an instruction that
    /// changes the frame begins at the next instruction.
    pub offset: u32,
    /// Number of bytes to add to `cfa_register` to get the CFA.
    pub cfa_offset: i32,
    /// The register from which the CFA is computed.
    pub cfa_register: u16,
    /// Bits of jitscribe_row_flag.
    pub flags: u16,
    /// Number of `saved`.
    pub saved_count: u32,
    /// The registers whose values for the caller are in memory, in any order. The return address may be left out if
    /// it is where the call put it.
    pub saved: *const Saved,
}

/// How to find the caller's frame from within a code. All zeros: no unwind info.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Unwind {
    /// A jitscribe_unwind_kind.
    pub kind: u32,
    /// FRAME_POINTER: offset of the prologue's first instruction in the code: 0, or 4 behind an `endbr64`, `bti` or
    /// `paciasp`.
    pub prologue: u32,
    /// Bits of jitscribe_unwind_flag.
    pub flags: u32,
    /// Reserved: set to 0.
    pub reserved: u32,
    /// FRAME_POINTER: NULL, or one row: from its `offset` on, which is behind the prologue, the registers in its `saved` are
    /// saved, too. Its other fields are not used.
    ///
    /// ROWS: ascending by offset. Before the first row, the frame is as the call left it (x86-64: CFA = rsp + 8;
    /// aarch64: CFA = sp), so an empty table describes a leaf function without a frame.
    pub rows: *const Row,
    /// Number of `rows`.
    pub row_count: usize,
    /// EH_FRAME: the content of an .eh_frame section with one CIE and one FDE for the whole code. Pointers in it are
    /// relative to the end of the code, rounded up to a multiple of 8.
    pub eh_frame: *const u8,
    /// Its size in bytes.
    pub eh_frame_size: usize,
}

/// The saved registers of all rows, one row after the other.
#[derive(Default)]
pub(crate) struct SavedBuffer(SmallVec<[(u16, i32); 16]>);

/// The rows, which refer to a [`SavedBuffer`].
#[derive(Default)]
pub(crate) struct RowBuffer<'a>(SmallVec<[unwind_info::Row<'a>; 8]>);

impl Unwind {
    /// Whether there are rows, for which [`Self::decode`] needs buffers.
    #[inline]
    pub(crate) fn has_rows(&self) -> bool {
        self.kind == UnwindKind::Rows as u32
            || self.kind == UnwindKind::FramePointer as u32 && self.row_count != 0
    }

    /// The unwind info, as the Rust type. `None`: there is none.
    ///
    /// # Safety
    /// Its pointers fulfil the contract of the header for as long as the result is used.
    pub(crate) unsafe fn decode<'s: 'r, 'r>(
        &self,
        saved: &'s mut SavedBuffer,
        rows: &'r mut RowBuffer<'s>,
    ) -> Result<Option<unwind_info::Unwind<'r>>, Failure> {
        if self.has_rows() {
            // SAFETY: guaranteed by the caller.
            let rows = unsafe { self.rows(saved, rows) }?;
            if self.kind == UnwindKind::Rows as u32 {
                return Ok(Some(unwind_info::Unwind::Rows(rows)));
            }
            let [row] = rows else { return Err(Failure::Argument) };
            return Ok(Some(unwind_info::Unwind::FramePointerSaving {
                prologue: self.prologue,
                signed: self.is_signed(),
                saved_from: row.offset,
                saved: row.saved,
            }));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.without_rows() }
    }

    /// [`Self::decode`], for all forms but rows, which are taken as none.
    ///
    /// # Safety
    /// As for [`Self::decode`].
    #[inline]
    pub(crate) unsafe fn without_rows<'r>(
        &self,
    ) -> Result<Option<unwind_info::Unwind<'r>>, Failure> {
        const FRAME_POINTER: u32 = UnwindKind::FramePointer as u32;
        const FRAME_POINTER_ALWAYS: u32 = UnwindKind::FramePointerAlways as u32;
        const EH_FRAME: u32 = UnwindKind::EhFrame as u32;
        let signed = self.is_signed();
        Ok(Some(match self.kind {
            FRAME_POINTER => unwind_info::Unwind::FramePointer { prologue: self.prologue, signed },
            FRAME_POINTER_ALWAYS => unwind_info::Unwind::FramePointerAlways { signed },
            EH_FRAME => unwind_info::Unwind::EhFrame(
                // SAFETY: guaranteed by the caller.
                unsafe { raw::slice(self.eh_frame, self.eh_frame_size) }?,
            ),
            _ => return Ok(None),
        }))
    }

    fn is_signed(&self) -> bool {
        self.flags & UnwindFlag::Signed as u32 != 0
    }

    /// # Safety
    /// As for [`Self::decode`].
    unsafe fn rows<'s: 'r, 'r>(
        &self,
        saved: &'s mut SavedBuffer,
        rows: &'r mut RowBuffer<'s>,
    ) -> Result<&'r [unwind_info::Row<'r>], Failure> {
        // SAFETY: guaranteed by the caller.
        let given = unsafe { raw::slice(self.rows, self.row_count) }?;
        for row in given {
            // SAFETY: guaranteed by the caller.
            let of_row = unsafe { raw::slice(row.saved, row.saved_count as usize) }?;
            saved.0.try_reserve(of_row.len()).map_err(|_| Failure::Memory)?;
            saved.0.extend(of_row.iter().map(|saved| (saved.reg, saved.offset)));
        }
        rows.0.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
        let mut left = saved.0.as_slice();
        for row in given {
            let (saved, rest) = left.split_at(row.saved_count as usize);
            left = rest;
            rows.0.push(
                unwind_info::Row::new(row.offset, row.cfa_register, row.cfa_offset)
                    .saved(saved)
                    .signed(row.flags & RowFlag::Signed as u16 != 0),
            );
        }
        Ok(&rows.0)
    }
}
