//! Leaves one frame by an `.eh_frame` section.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection,
};
use minidump_unwind::FrameWalker;

use crate::registers::Machine;

/// Sets the registers of the caller of the frame at the walker's address. `None` if there is no description of it, or if it is one that
/// no code generator known to this project writes: an expression.
pub(crate) fn leave(
    frames: &[u8],
    machine: Machine,
    walker: &mut (dyn FrameWalker + Send),
) -> Option<()> {
    let address = walker.get_instruction();
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(8);
    let bases = BaseAddresses::default();
    let fde = section.fde_for_address(&bases, address, EhFrame::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(&section, &bases, &mut context, address).ok()?;
    let value = |walker: &mut (dyn FrameWalker + Send), register: Register| {
        walker.get_callee_register(machine.register(register.0)?)
    };
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
    let cfa = value(walker, register)?.wrapping_add_signed(offset);

    let ra = fde.cie().return_address_register();
    let mut return_address = None;
    let mut caller = Vec::new();
    for (register, rule) in row.registers() {
        let found = match *rule {
            RegisterRule::Offset(offset) => {
                Some(walker.get_register_at_address(cfa.wrapping_add_signed(offset))?)
            }
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
            RegisterRule::Register(other) => Some(value(walker, other)?),
            RegisterRule::SameValue => continue,
            RegisterRule::Undefined => None,
            _ => return None,
        };
        match found {
            Some(found) if *register == ra => return_address = Some(found),
            // The outermost frame.
            None if *register == ra => return None,
            found => caller.push((machine.register(register.0)?, found)),
        }
    }
    // Where the machine keeps it in a register.
    let return_address = match return_address {
        Some(found) => found,
        None => value(walker, ra)?,
    };
    walker.set_cfa(cfa)?;
    walker.set_ra(return_address)?;
    for (name, found) in caller {
        match found {
            Some(found) => walker.set_caller_register(name, found)?,
            None => walker.clear_caller_register(name),
        }
    }
    Some(())
}
