//! `.eh_frame` and `.eh_frame_hdr` of one function, as an UNWINDING_INFO record carries them.
//!
//! Both are relative to their own place and lie, in this order, right behind the code at the next
//! multiple of eight: there perf looks for them, and there the arena really puts them.

use unwind_info::{Error, Row, Unwind, behind_code};

use crate::frame::{FrameRow, MACHINE};

/// Where `.eh_frame` starts behind code of this size.
pub(crate) const fn offset_behind(code_size: usize) -> usize {
    code_size.next_multiple_of(8)
}

/// The two sections' bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EhFrame {
    pub(crate) eh_frame: Vec<u8>,
    pub(crate) eh_frame_hdr: Vec<u8>,
}

impl EhFrame {
    pub(crate) fn size(&self) -> usize {
        self.eh_frame.len() + self.eh_frame_hdr.len()
    }
}

/// The sections of a code with these states.
pub(crate) fn eh_frame(code_size: usize, rows: &[FrameRow]) -> Result<EhFrame, Error> {
    let rows: Vec<Row<'_>> = rows.iter().map(FrameRow::borrow).collect();
    let mut eh_frame = Vec::new();
    let sizes = behind_code(MACHINE, code_size as u64, &Unwind::Rows(&rows), &mut eh_frame)?;
    let eh_frame_hdr = eh_frame.split_off(sizes.eh_frame);
    Ok(EhFrame { eh_frame, eh_frame_hdr })
}

#[cfg(test)]
mod tests {
    use gimli::read::{EhFrame as Frames, EhFrameHdr, UnwindSection};
    use gimli::{BaseAddresses, CfaRule, LittleEndian, RegisterRule, UnwindContext, X86_64};

    use super::*;
    use crate::ast::FunctionId;
    use crate::codegen::{Compiled, Compiler, Tier};
    use crate::frame::FrameKind;
    use crate::parser::parse;
    use crate::plan;

    const CODE: u64 = 0x1000;

    /// Where the caller's frame starts and what became of `rbp`, at every byte of the code.
    fn rows(compiled: &Compiled) -> Vec<(CfaRule<usize>, Option<RegisterRule<usize>>)> {
        let eh_frame = CODE + offset_behind(compiled.bytes.len()) as u64;
        let bases = BaseAddresses::default()
            .set_eh_frame(eh_frame)
            .set_eh_frame_hdr(eh_frame + compiled.unwind.eh_frame.len() as u64);
        let frames = Frames::new(&compiled.unwind.eh_frame, LittleEndian);
        let header = EhFrameHdr::new(&compiled.unwind.eh_frame_hdr, LittleEndian);
        let header = header.parse(&bases, 8).unwrap();
        let table = header.table().unwrap();
        let mut context = UnwindContext::new();
        let end = CODE + compiled.bytes.len() as u64;
        let mut at = |address| {
            let cie = Frames::cie_from_offset;
            let row = table.unwind_info_for_address(&frames, &bases, &mut context, address, cie);
            row.map(|row| (row.cfa().clone(), row.register(X86_64::RBP)))
        };
        assert!(at(CODE - 1).is_err() && at(end).is_err());
        (CODE..end).map(|address| at(address).unwrap()).collect()
    }

    fn from(register: gimli::Register, offset: i64) -> CfaRule<usize> {
        CfaRule::RegisterAndOffset { register, offset }
    }

    #[test]
    fn the_tables_hold_at_the_first_and_the_last_instruction_and_between() {
        let program = parse(plan::DEMO).unwrap();
        for frames in [FrameKind::Pointer, FrameKind::None] {
            let mut compiler = Compiler::new(frames).unwrap();
            for id in (0..program.functions.len()).map(FunctionId) {
                for tier in Tier::ALL {
                    let compiled = compiler.compile(&program, id, tier).unwrap();
                    let rows = rows(&compiled);
                    assert_eq!(rows[0].0, from(X86_64::RSP, 8));
                    let saved = Some(RegisterRule::Offset(-16));
                    assert_eq!(rows[1], (from(X86_64::RSP, 16), saved.clone()));
                    // Behind `pop rbp`, the only place but the start where the frame is gone.
                    let gone: Vec<usize> =
                        (1..rows.len()).filter(|at| rows[*at].0 == from(X86_64::RSP, 8)).collect();
                    let [ret] = gone[..] else { panic!("{gone:?}") };
                    assert_eq!(compiled.bytes[ret - 1..=ret], [0x5d, 0xc3]);
                    // Nothing is said of it, which means that it has the caller's value.
                    assert_eq!(rows[ret].1, None);
                    for (at, (cfa, rbp)) in rows.iter().enumerate().skip(4) {
                        if at == ret {
                            continue;
                        }
                        assert_eq!(*rbp, saved);
                        let CfaRule::RegisterAndOffset { register, offset } = *cfa else {
                            panic!("{cfa:?}")
                        };
                        match frames {
                            FrameKind::Pointer => {
                                assert_eq!((register, offset), (X86_64::RBP, 16));
                            }
                            FrameKind::None => {
                                assert_eq!(register, X86_64::RSP);
                                assert!(offset >= 16 && offset % 16 == 0, "{offset}");
                            }
                        }
                    }
                    let spoilt = compiled.bytes[1..4] == [0x48, 0xf7, 0xd5];
                    assert_eq!(spoilt, frames == FrameKind::None);
                }
            }
        }
    }
}
