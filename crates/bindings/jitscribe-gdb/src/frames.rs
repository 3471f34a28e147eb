//! Unwinds a frame to its caller, with the unwind tables of a code.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, NativeEndian, Register, RegisterRule, UnwindContext,
    UnwindSection,
};

/// `EM_X86_64`, to which these registers belong.
pub(crate) const X86_64: u32 = 62;
/// Number of registers, including the program counter, which is the last.
pub(crate) const COUNT: usize = 17;
const STACK_POINTER: usize = 7;
const PC: usize = 16;

/// Registers by their DWARF numbers; `None` if the value is not known.
pub(crate) type Registers = [Option<u64>; COUNT];

/// The registers of the caller, and the canonical frame address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) registers: Registers,
    pub(crate) cfa: u64,
}

/// The program counter.
pub(crate) fn pc(registers: &Registers) -> Option<u64> {
    registers.get(PC).copied().flatten()
}

/// The stack pointer.
pub(crate) fn stack_pointer(registers: &Registers) -> Option<u64> {
    registers.get(STACK_POINTER).copied().flatten()
}

/// Unwinds one frame with `tables`, an `.eh_frame` made for the address `at`.
///
/// `None` if the tables do not cover the address, or contain something that is not available: a rule with an expression,
/// memory that cannot be read.
pub(crate) fn unwind(
    tables: &[u8],
    at: u64,
    address: u64,
    registers: &Registers,
    word: impl Fn(u64) -> Option<u64>,
) -> Option<Caller> {
    let section = EhFrame::new(tables, NativeEndian);
    let bases = BaseAddresses::default().set_eh_frame(at);
    let fde = section.fde_for_address(&bases, address, EhFrame::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(&section, &bases, &mut context, address).ok()?;
    let value = |register: Register| registers.get(usize::from(register.0)).copied().flatten();
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            value(*register)?.checked_add_signed(*offset)?
        }
        CfaRule::Expression(_) => return None,
    };
    let return_address = usize::from(fde.cie().return_address_register().0);
    let mut caller = *registers;
    for (number, place) in caller.iter_mut().enumerate() {
        let register = Register(u16::try_from(number).ok()?);
        *place = match row.register(register) {
            Some(RegisterRule::Offset(offset)) => Some(word(cfa.checked_add_signed(offset)?)?),
            Some(RegisterRule::ValOffset(offset)) => Some(cfa.checked_add_signed(offset)?),
            Some(RegisterRule::Register(other)) => value(other),
            Some(RegisterRule::Constant(constant)) => Some(constant),
            Some(RegisterRule::SameValue) => value(register),
            Some(RegisterRule::Undefined) | None if number == STACK_POINTER => Some(cfa),
            // A register without a rule is unchanged, which compilers rely on.
            None => value(register),
            Some(RegisterRule::Undefined) => None,
            Some(_) => return None,
        };
    }
    // The caller continues at the return address. Without one, this frame is the outermost.
    let back = caller.get(return_address).copied().flatten()?;
    *caller.get_mut(PC)? = Some(back);
    (back != 0).then_some(Caller { registers: caller, cfa })
}

#[cfg(test)]
mod tests {
    use unwind_info::{Machine, Row, Unwind, eh_frame};

    use super::*;

    const START: u64 = 0x10_0000;

    fn tables(unwind: &Unwind<'_>) -> Vec<u8> {
        let mut tables = Vec::new();
        eh_frame(Machine::X86_64, 40, 40, unwind, &mut tables).unwrap();
        tables
    }

    /// `rsp` 0x7000, `rbp` 0x7100, and a stack whose words contain their own addresses.
    fn registers() -> Registers {
        let mut registers = [Some(1); COUNT];
        registers[6] = Some(0x7100);
        registers[STACK_POINTER] = Some(0x7000);
        registers
    }

    #[test]
    fn rows_apply_from_their_offsets_on() {
        let rows = [Row::new(4, 7, 32), Row::new(39, 7, 8)];
        let tables = tables(&Unwind::Rows(&rows));
        for (offset, cfa) in [(0, 0x7008), (3, 0x7008), (4, 0x7020), (38, 0x7020), (39, 0x7008)] {
            let caller =
                unwind(&tables, START + 40, START + offset, &registers(), Some).expect("a caller");
            assert_eq!(caller.cfa, cfa);
            assert_eq!(pc(&caller.registers), Some(cfa - 8));
            assert_eq!(stack_pointer(&caller.registers), Some(cfa));
            assert_eq!(caller.registers[6], Some(0x7100));
        }
        assert_eq!(unwind(&tables, START + 40, START + 40, &registers(), Some), None);
    }

    #[test]
    fn a_frame_pointer_is_read_from_the_stack() {
        let tables = tables(&Unwind::FRAME_POINTER);
        let caller = unwind(&tables, START + 40, START + 20, &registers(), Some).expect("a caller");
        assert_eq!((caller.cfa, caller.registers[6]), (0x7110, Some(0x7100)));
        assert_eq!(pc(&caller.registers), Some(0x7108));
    }

    #[test]
    fn unreadable_memory_ends_the_walk() {
        let tables = tables(&Unwind::FRAME_POINTER);
        assert_eq!(unwind(&tables, START + 40, START + 20, &registers(), |_| None), None);
    }
}
