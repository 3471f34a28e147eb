//! How to find the caller's frame from within a code, as C tells it.
#![allow(unsafe_code)]

use smallvec::SmallVec;

use crate::outcome::Failure;
use crate::raw;

/// In which way it is told.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindKind {
    /// Not at all. Profilers that walk frame pointers may still come through. So is every number that is
    /// not in this list.
    None = 0,
    /// The usual prologue at `prologue`, and a frame pointer from there to the end. x86-64: `push rbp; mov
    /// rbp, rsp`. aarch64: `stp x29, x30, [sp, -16]!; mov x29, sp`. Right at each instruction but for the
    /// epilogue.
    FramePointer = 1,
    /// A frame pointer that holds at each instruction: for code that runs in a frame which other code has
    /// set up.
    FramePointerAlways = 2,
    /// By `rows`, which is right at each instruction.
    Rows = 3,
    /// By `eh_frame`.
    EhFrame = 4,
}

/// Bits of jitscribe_unwind.flags.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindFlag {
    /// aarch64, frame pointers: what is saved as return address is signed, by a `paciasp`.
    Signed = 1,
}

/// Bits of jitscribe_row.flags.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFlag {
    /// aarch64: the return address is signed, with the CFA as modifier (`paciasp`).
    Signed = 1,
}

/// Where the caller's value of a register was saved.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Saved {
    /// Distance of the place from the CFA in bytes: a multiple of 8, below 0 as a rule.
    pub offset: i32,
    /// The register's number in DWARF.
    pub reg: u16,
    /// 0.
    pub reserved: u16,
}

/// The state of the frame from an offset on, up to the next row.
///
/// CFA is the canonical frame address of DWARF: the value of the stack pointer before the call, for x86-64 before the
/// call pushed its return address. Registers have the numbers that the machine's ABI gives them in DWARF: x86-64
/// rbx 3, rbp 6, rsp 7, r12 to r15 12 to 15; aarch64 x0 to x30 0 to 30, sp 31.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Offset in the code of the first instruction for which the row holds. An instruction that
    /// changes the frame has changed it where the next one begins.
    pub offset: u32,
    /// What is added to `cfa_reg` to get the CFA, in bytes.
    pub cfa_offset: i32,
    /// The register that the CFA is computed from.
    pub cfa_reg: u16,
    /// Bits of jitscribe_row_flag.
    pub flags: u16,
    /// How many `saved` are.
    pub saved_count: u32,
    /// The registers whose values for the caller are in memory, in any order. The return address need not
    /// be told where the call has put it.
    pub saved: *const Saved,
}

/// How to find the caller's frame from within a code. All zeros: not told.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Unwind {
    /// A jitscribe_unwind_kind.
    pub kind: u32,
    /// FRAME_POINTER: offset of the prologue's first instruction in the code. 0, or 4 behind an `endbr64`,
    /// `bti` or `paciasp`.
    pub prologue: u32,
    /// Bits of jitscribe_unwind_flag.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
    /// ROWS: ascending by their offsets. Before the first row holds what a call leaves (x86-64: CFA = rsp + 8;
    /// aarch64: CFA = sp), so that no rows at all describe a leaf without a frame.
    pub rows: *const Row,
    /// How many they are.
    pub row_count: usize,
    /// EH_FRAME: the content of an .eh_frame section with one CIE and one FDE for the whole code. Pointers in it are
    /// relative to the place behind the code, its end rounded up to a multiple of 8.
    pub eh_frame: *const u8,
    /// Its size in bytes.
    pub eh_frame_size: usize,
}

/// The registers of all rows, one after the other.
#[derive(Default)]
pub(crate) struct SavedRoom(SmallVec<[(u16, i32); 16]>);

/// The rows, which refer to a [`SavedRoom`].
#[derive(Default)]
pub(crate) struct RowRoom<'a>(SmallVec<[unwind_info::Row<'a>; 8]>);

impl Unwind {
    /// What it says, in Rust's terms. `None`: nothing.
    ///
    /// # Safety
    /// Its pointers keep to the contract of the header for as long as what is returned is used.
    pub(crate) unsafe fn told<'s: 'r, 'r>(
        &self,
        saved: &'s mut SavedRoom,
        rows: &'r mut RowRoom<'s>,
    ) -> Result<Option<unwind_info::Unwind<'r>>, Failure> {
        const FRAME_POINTER: u32 = UnwindKind::FramePointer as u32;
        const FRAME_POINTER_ALWAYS: u32 = UnwindKind::FramePointerAlways as u32;
        const ROWS: u32 = UnwindKind::Rows as u32;
        const EH_FRAME: u32 = UnwindKind::EhFrame as u32;
        let signed = self.flags & UnwindFlag::Signed as u32 != 0;
        Ok(Some(match self.kind {
            FRAME_POINTER => unwind_info::Unwind::FramePointer { prologue: self.prologue, signed },
            FRAME_POINTER_ALWAYS => unwind_info::Unwind::FramePointerAlways { signed },
            // SAFETY: the caller's promise.
            ROWS => unwind_info::Unwind::Rows(unsafe { self.rows(saved, rows) }?),
            EH_FRAME => unwind_info::Unwind::EhFrame(
                // SAFETY: the caller's promise.
                unsafe { raw::slice(self.eh_frame, self.eh_frame_size) }?,
            ),
            _ => return Ok(None),
        }))
    }

    /// # Safety
    /// As [`Self::told`].
    unsafe fn rows<'s: 'r, 'r>(
        &self,
        saved: &'s mut SavedRoom,
        rows: &'r mut RowRoom<'s>,
    ) -> Result<&'r [unwind_info::Row<'r>], Failure> {
        // SAFETY: the caller's promise.
        let given = unsafe { raw::slice(self.rows, self.row_count) }?;
        for row in given {
            // SAFETY: the caller's promise.
            let of_row = unsafe { raw::slice(row.saved, row.saved_count as usize) }?;
            saved.0.extend(of_row.iter().map(|saved| (saved.reg, saved.offset)));
        }
        let mut left = saved.0.as_slice();
        for row in given {
            let (saved, rest) = left.split_at(row.saved_count as usize);
            left = rest;
            rows.0.push(unwind_info::Row {
                offset: row.offset,
                cfa_register: row.cfa_reg,
                cfa_offset: row.cfa_offset,
                saved,
                signed: row.flags & RowFlag::Signed as u16 != 0,
            });
        }
        Ok(&rows.0)
    }
}
