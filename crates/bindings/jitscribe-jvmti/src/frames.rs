//! The unwind info of compiled methods.
//!
//! HotSpot's compilers make frames of a fixed size. Their prologue saves `rbp` next to the return address, whether or not it is
//! the frame pointer (`-XX:+PreserveFramePointer`), and allocates the rest of the frame at once. Up to the epilogue, the stack
//! pointer changes only within intrinsics: those of `String.compareTo` and `String.indexOf` push. With a frame pointer, the rows
//! are relative to that. HotSpot reports only the size of the frame and where it is complete. Where `rbp` is pushed, and
//! where epilogues are, is found in the instructions, for which its two compilers use few forms. If no known form is found, the
//! rows say nothing about `rbp`. Interpreted frames are entirely different: see [`interpreter`](crate::interpreter).

use jitscribe::Row;
use memchr::memmem::Finder;

use crate::hotspot::Nmethod;

/// DWARF register numbers.
const RBP: u16 = 6;
const RSP: u16 = 7;

/// `rbp` is saved next to the return address.
const SAVED: &[(u16, i32)] = &[(RBP, -16)];

/// Maximum distance of an epilogue's `ret` or jump from where the frame is left: `vzeroupper`, a safepoint poll, and a branch.
const EPILOGUE: usize = 24;

/// Enough for most methods. An epilogue has three rows.
const ROWS: usize = 16;

/// The rows for machine code; `None` if they are not known.
pub(crate) fn rows(code: &[u8], nmethod: &Nmethod) -> Option<Vec<Row<'static>>> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let complete = usize::try_from(nmethod.frame_complete?).ok()?;
    let frame = nmethod.frame_size.checked_sub(16)?;
    let prologue = code.get(..complete)?;
    let body = Cfa { register: RSP, offset: i32::try_from(nmethod.frame_size).ok()? };
    let mut rows = Rows { all: Vec::with_capacity(ROWS), body };
    let leave = match Prologue::of(prologue, frame) {
        Prologue::Push { pushed, taken, has_frame_pointer } => {
            if has_frame_pointer {
                rows.body = Cfa { register: RBP, offset: 16 };
            }
            rows.put(pushed, Cfa { register: RSP, offset: 16 }, SAVED);
            rows.put(taken, rows.body, SAVED);
            if frame == 0 { Vec::new() } else { change_stack(0xc4, frame).to_vec() }
        }
        Prologue::Store { taken, stored } => {
            rows.put(taken, rows.body, &[]);
            rows.put(stored, rows.body, SAVED);
            if frame == 0 { Vec::new() } else { change_stack(0xc4, frame).to_vec() }
        }
        Prologue::Unknown => {
            rows.put(complete, rows.body, &[]);
            return Some(rows.all);
        }
    };
    rows.epilogues(code, complete, &leave);
    Some(rows.all)
}

/// The instruction that subtracts `bytes` from the stack pointer (0xec) or adds them (0xc4).
struct StackChange {
    bytes: [u8; 7],
    length: usize,
}

impl std::ops::Deref for StackChange {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn change_stack(register: u8, bytes: u32) -> StackChange {
    let [a, b, c, d] = bytes.to_le_bytes();
    match i8::try_from(bytes) {
        Ok(_) => StackChange { bytes: [0x48, 0x83, register, a, 0, 0, 0], length: 4 },
        Err(_) => StackChange { bytes: [0x48, 0x81, register, a, b, c, d], length: 7 },
    }
}

/// The form of a prologue, and the offsets at which its steps are done.
enum Prologue {
    /// `push rbp; [mov rbp, rsp]; sub rsp, frame`, the last only if there is something to subtract.
    Push { pushed: usize, taken: usize, has_frame_pointer: bool },
    /// `sub rsp, frame + 8; mov [rsp + frame], rbp`.
    Store { taken: usize, stored: usize },
    /// Something else.
    Unknown,
}

impl Prologue {
    /// Searches `code`, at whose end the frame is complete. The last match is used: before it may be an entry that first checks
    /// the receiver's class.
    fn of(code: &[u8], frame: u32) -> Self {
        let sub = change_stack(0xec, frame);
        let sub = if frame == 0 { &[][..] } else { &*sub };
        for at in (0..code.len()).rev() {
            let Some(behind) = code[at..].strip_prefix(&[0x55]) else { continue };
            // In either of its two encodings.
            let moved = behind.strip_prefix(&[0x48, 0x8b, 0xec]);
            let moved = moved.or_else(|| behind.strip_prefix(&[0x48, 0x89, 0xe5]));
            let behind = moved.unwrap_or(behind);
            if let Some(rest) = behind.strip_prefix(sub) {
                let taken = code.len() - rest.len();
                return Self::Push { pushed: at + 1, taken, has_frame_pointer: moved.is_some() };
            }
        }
        let sub = frame.checked_add(8).map(|size| change_stack(0xec, size));
        let [a, b, c, d] = frame.to_le_bytes();
        let near = [0x48, 0x89, 0x6c, 0x24, a];
        let far = [0x48, 0x89, 0xac, 0x24, a, b, c, d];
        let store = if i8::try_from(frame).is_ok() { &near[..] } else { &far[..] };
        for at in (0..code.len()).rev() {
            let Some(behind) = sub.as_deref().and_then(|sub| code[at..].strip_prefix(sub)) else {
                continue;
            };
            if let Some(rest) = behind.strip_prefix(store) {
                let taken = code.len() - behind.len();
                return Self::Store { taken, stored: code.len() - rest.len() };
            }
        }
        Self::Unknown
    }
}

/// Where the caller's frame begins: so many bytes above what a register has.
#[derive(Clone, Copy)]
struct Cfa {
    register: u16,
    offset: i32,
}

struct Rows {
    all: Vec<Row<'static>>,
    /// Between prologue and epilogues.
    body: Cfa,
}

impl Rows {
    fn put(&mut self, offset: usize, cfa: Cfa, saved: &'static [(u16, i32)]) {
        let Ok(offset) = u32::try_from(offset) else { return };
        let row = Row::new(offset, cfa.register, cfa.offset).saved(saved);
        match self.all.last_mut() {
            Some(last) if last.offset == offset => *last = row,
            _ => self.all.push(row),
        }
    }

    /// Adds rows for the epilogues, each of which tears down the frame with `leave` and `pop rbp`, and then returns or jumps.
    fn epilogues(&mut self, code: &[u8], from: usize, leave: &[u8]) {
        let pattern = [leave, &[0x5d]].concat();
        let finder = Finder::new(&pattern);
        let mut at = from;
        while let Some(found) = code.get(at..).and_then(|rest| finder.find(rest)) {
            at += found;
            let popped = at + pattern.len();
            let Some(end) = code.get(popped..).and_then(leaves) else {
                at += 1;
                continue;
            };
            if !leave.is_empty() {
                self.put(popped - 1, Cfa { register: RSP, offset: 16 }, SAVED);
            }
            self.put(popped, Cfa { register: RSP, offset: 8 }, &[]);
            at = popped + end;
            if at < code.len() {
                self.put(at, self.body, SAVED);
            }
        }
    }
}

/// The end of an epilogue after the frame is torn down: behind the `ret`, or behind the jump to its slow path.
fn leaves(code: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < EPILOGUE {
        at += match code.get(at..)? {
            [0xc3, ..] => return Some(at + 1),
            [0xe9, ..] => return Some(at + 5),
            [0xeb, ..] => return Some(at + 2),
            // vzeroupper
            [0xc5, 0xf8, 0x77, ..] => 3,
            // cmp rsp, [r15 + …]: a safepoint poll
            [0x49, 0x3b, 0xa7, ..] => 7,
            [0x49, 0x3b, 0x67, ..] => 4,
            // ja …
            [0x0f, 0x87, ..] => 6,
            [0x77, ..] => 2,
            // test [rip + …], eax: the safepoint poll up to 12
            [0x85, 0x05, ..] => 6,
            // mov r10, [r15 + …]; test [r10], eax: the safepoint poll up to 16
            [0x4d, 0x8b, 0x97, ..] => 7,
            [0x4d, 0x8b, 0x57, ..] => 4,
            [0x41, 0x85, 0x02, ..] => 3,
            _ => return None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8], size: u32, complete: usize) -> Vec<(u32, i32, bool)> {
        let complete = Some(complete as u32);
        let nmethod =
            Nmethod { level: 4, is_osr: false, frame_size: size, frame_complete: complete };
        let rows = rows(code, &nmethod).expect("rows").into_iter();
        rows.map(|row| (row.offset, row.cfa_offset, !row.saved.is_empty())).collect()
    }

    /// `cmp rsp, [r15 + 0x338]; ja …; ret`
    const RETURN: &[u8] = &[0x49, 0x3b, 0xa7, 0x38, 3, 0, 0, 0x0f, 0x87, 1, 0, 0, 0, 0xc3];

    #[test]
    fn a_frame_by_push_is_left_by_pop() {
        // mov [rsp - 0x14000], eax; push rbp; sub rsp, 0x20; nop; add rsp, 0x20; pop rbp; …; nop
        let mut code =
            vec![0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20, 0x90];
        code.extend([0x48, 0x83, 0xc4, 0x20, 0x5d]);
        code.extend(RETURN);
        code.push(0x90);
        let rows = [(8, 16, true), (12, 48, true), (17, 16, true), (18, 8, false), (32, 48, true)];
        assert_eq!(of(&code, 48, 12), rows);
        // Cut off behind the return.
        code.pop();
        assert_eq!(of(&code, 48, 12), rows[..4]);
    }

    /// Its intrinsics push, so that the stack pointer says nothing.
    #[test]
    fn a_body_with_a_frame_pointer_is_relative_to_that() {
        // push rbp; mov rbp, rsp; sub rsp, 0x20; push rdx; pop rcx; add rsp, 0x20; pop rbp; …; nop
        for moved in [[0x48, 0x8b, 0xec], [0x48, 0x89, 0xe5]] {
            let mut code = vec![0x55];
            code.extend(moved);
            code.extend([0x48, 0x83, 0xec, 0x20, 0x52, 0x59, 0x48, 0x83, 0xc4, 0x20, 0x5d]);
            code.extend(RETURN);
            code.push(0x90);
            let complete = Some(8);
            let nmethod =
                Nmethod { level: 4, is_osr: false, frame_size: 48, frame_complete: complete };
            let rows = rows(&code, &nmethod).expect("rows").into_iter();
            let rows: Vec<_> =
                rows.map(|row| (row.offset, row.cfa_register, row.cfa_offset)).collect();
            let expected = [(1, RSP, 16), (8, RBP, 16), (14, RSP, 16), (15, RSP, 8), (29, RBP, 16)];
            assert_eq!(rows, expected);
        }
    }

    #[test]
    fn a_large_frame_without_push_stores_rbp() {
        // sub rsp, 0x98; mov [rsp + 0x90], rbp; add rsp, 0x90; pop rbp; ret
        let code = [
            0x48, 0x81, 0xec, 0x98, 0, 0, 0, 0x48, 0x89, 0xac, 0x24, 0x90, 0, 0, 0, 0x48, 0x81,
            0xc4, 0x90, 0, 0, 0, 0x5d, 0xc3,
        ];
        let rows = [(7, 160, false), (15, 160, true), (22, 16, true), (23, 8, false)];
        assert_eq!(of(&code, 160, 15), rows);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(of(&[0x90; 40], 48, 12), [(12, 48, false)]);
        // The frame is complete behind the code, or not at all.
        let mut nmethod =
            Nmethod { level: 1, is_osr: false, frame_size: 48, frame_complete: Some(9) };
        assert!(rows(&[0x90; 8], &nmethod).is_none());
        nmethod.frame_complete = None;
        assert!(rows(&[0x90; 8], &nmethod).is_none());
        nmethod = Nmethod { frame_size: 8, frame_complete: Some(4), ..nmethod };
        assert!(rows(&[0x90; 8], &nmethod).is_none());
    }
}
