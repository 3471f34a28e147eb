//! The tables as gimli reads them, and a naive model of the expected result.
#![allow(dead_code)] // each test file uses its part

pub mod windows;
#[cfg(windows)]
pub mod windows_system;

use std::collections::BTreeMap;

use gimli::read::{EhFrame, EhFrameHdr, UnwindSection};
use gimli::{
    AArch64, BaseAddresses, CfaRule, LittleEndian, RegisterRule, UnwindContext, UnwindTableRow,
    Vendor,
};
use unwind_info::{EH_FRAME_HDR_SIZE, Machine, Row, Unwind, behind_code, offset_behind};

pub const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

/// How to unwind at one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub cfa: (u16, i64),
    /// By number: distance from the CFA.
    pub saved: BTreeMap<u16, i64>,
    pub signed: bool,
}

/// The state at the entry of a function.
pub fn entry(machine: Machine) -> State {
    let (cfa, saved) = match machine {
        Machine::X86_64 => ((7, 8), BTreeMap::from([(16, -8)])),
        Machine::Aarch64 => ((31, 0), BTreeMap::new()),
        other => panic!("{other:?}"),
    };
    State { cfa, saved, signed: false }
}

/// The state that the rows describe for the instruction at `offset`.
pub fn by_rows(machine: Machine, rows: &[Row<'_>], offset: u32) -> State {
    let mut state = entry(machine);
    if let Some(row) = rows.iter().rfind(|row| row.offset <= offset) {
        state.cfa = (row.cfa_register, row.cfa_offset.into());
        state.saved.extend(row.saved.iter().map(|&(register, at)| (register, i64::from(at))));
        state.signed = row.signed;
    }
    state
}

fn state(row: &UnwindTableRow<usize>) -> State {
    let &CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { panic!("{row:?}") };
    let mut state = State { cfa: (register.0, offset), saved: BTreeMap::new(), signed: false };
    for (register, rule) in row.registers() {
        match *rule {
            RegisterRule::Offset(at) => {
                state.saved.insert(register.0, at);
            }
            RegisterRule::Constant(signed) if *register == AArch64::RA_SIGN_STATE => {
                state.signed = signed == 1;
            }
            _ => panic!("{row:?}"),
        }
    }
    state
}

/// Tables at their position in memory.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    pub machine: Machine,
    pub code: u64,
    pub code_size: u64,
    pub frames: &'a [u8],
    pub frames_at: u64,
    pub header: &'a [u8],
    pub header_at: u64,
}

impl Placed<'_> {
    /// The state at an offset in the code, found through the search table. `None` outside the code.
    pub fn at(&self, offset: i64) -> Option<State> {
        let bases =
            BaseAddresses::default().set_eh_frame(self.frames_at).set_eh_frame_hdr(self.header_at);
        let mut frames = EhFrame::new(self.frames, LittleEndian);
        if self.machine == Machine::Aarch64 {
            frames.set_vendor(Vendor::AArch64);
        }
        let header = EhFrameHdr::new(self.header, LittleEndian).parse(&bases, 8).unwrap();
        assert_eq!(header.eh_frame_ptr(), gimli::Pointer::Direct(self.frames_at));
        let table = header.table().unwrap();
        let address = self.code.wrapping_add_signed(offset);
        let fde = table.fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset).ok()?;
        assert_eq!((fde.initial_address(), fde.len()), (self.code, self.code_size));
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&frames, &bases, &mut context, address).unwrap();
        assert_eq!(fde.cie().return_address_register().0, self.machine.return_address());
        Some(state(row))
    }

    /// The state at each instruction.
    pub fn all(&self) -> Vec<State> {
        let unit = self.machine.code_alignment() as usize;
        assert_eq!(self.at(-1), None);
        assert_eq!(self.at(self.code_size as i64), None);
        (0..self.code_size as i64).step_by(unit).map(|offset| self.at(offset).unwrap()).collect()
    }
}

/// The state at each instruction of a code with its tables behind it.
pub fn states_behind_code(machine: Machine, size: u64, unwind: &Unwind<'_>) -> Vec<State> {
    let mut out = Vec::new();
    let tables = behind_code(machine, size, unwind, &mut out).unwrap();
    assert_eq!((tables.total(), tables.eh_frame_hdr), (out.len(), EH_FRAME_HDR_SIZE));
    let (frames, header) = out.split_at(tables.eh_frame);
    let code = 0x7f00_0000_0000;
    let frames_at = code + offset_behind(size).unwrap();
    let header_at = frames_at + tables.eh_frame as u64;
    Placed { machine, code, code_size: size, frames, frames_at, header, header_at }.all()
}
