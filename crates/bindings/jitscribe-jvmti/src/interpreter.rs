//! The unwind info of interpreted frames.
//!
//! Interpreted frames have `rbp` (HotSpot's frame_x86.hpp). The caller's frame ends where its stack pointer was at the call,
//! which the frame saves in the word below `rbp`: the callee's arguments are there, which the interpreter makes part of its own
//! frame, and what an adapter moved for it. So the CFA is in memory, and everything else is at an offset from `rbp` and not from
//! the CFA, which [`Row`](jitscribe::Row) cannot express.

/// The offset of the tables behind the code is a multiple of this.
const ALIGNMENT: u32 = 8;

/// A CIE with all the rules. The FDE adds only the range.
const CIE: [u8; 36] = [
    32, 0, 0, 0, // length
    0, 0, 0, 0, // a CIE
    1, // version
    b'z', b'R', 0, 1,    // alignment of code
    0x78, // of data: -8
    16,   // the return address
    1, 0x1b, // pointers are relative, of four bytes
    0x0f, 3, 0x76, 0x78, 0x06, // DW_CFA_def_cfa_expression: the word at rbp - 8
    0x10, 6, 2, 0x76, 0x00, // DW_CFA_expression: the caller's rbp is at rbp
    0x10, 16, 2, 0x76, 0x08, // where it goes on, at rbp + 8
    0, 0, 0, 0, // DW_CFA_nop
];

/// Offset of the FDE's field for the start of its code.
const BEGIN: u32 = 8;

/// The `.eh_frame` of the interpreter's code of `size` bytes; `None` if its frames are not known.
pub(crate) fn eh_frame(size: u32) -> Option<Vec<u8>> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let cie = CIE.len() as u32;
    let to_begin = size.checked_next_multiple_of(ALIGNMENT)?.checked_add(cie + BEGIN)?;
    let begin = 0_i32.checked_sub_unsigned(to_begin)?;
    let mut section = CIE.to_vec();
    section.extend(20_u32.to_le_bytes());
    section.extend((cie + 4).to_le_bytes());
    section.extend(begin.to_le_bytes());
    section.extend(size.to_le_bytes());
    // The FDE adds no rules: no augmentation data, and seven times DW_CFA_nop.
    section.extend([0; 8]);
    Some(section)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use gimli::{
        BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindSection,
    };

    use super::*;

    #[test]
    fn is_read_as_it_is_meant() {
        let (code, size) = (0x7000_0000_u64, 61_001);
        let section = eh_frame(size).unwrap();
        let place = code + u64::from(size.next_multiple_of(ALIGNMENT));
        let frames = EhFrame::new(&section, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(place);
        let inside = code + 5_000;
        let fde = frames.fde_for_address(&bases, inside, EhFrame::cie_from_offset).unwrap();
        assert_eq!((fde.initial_address(), fde.len()), (code, u64::from(size)));
        let mut room = gimli::UnwindContext::new();
        let row = fde.unwind_info_for_address(&frames, &bases, &mut room, inside).unwrap();
        let words = |expression: &gimli::UnwindExpression<usize>| {
            expression.get(&frames).unwrap().0.slice().to_vec()
        };
        let CfaRule::Expression(cfa) = row.cfa() else { panic!("{row:?}") };
        assert_eq!(words(cfa), [0x76, 0x78, 0x06]);
        for (register, place) in [(6, 0x00), (16, 0x08)] {
            let Some(RegisterRule::Expression(rule)) = row.register(Register(register)) else {
                panic!("{row:?}")
            };
            assert_eq!(words(&rule), [0x76, place]);
        }
    }
}
