//! `.eh_frame` and `.eh_frame_hdr` of one function, as an UNWINDING_INFO record carries them.
//!
//! Both are relative to their own place and lie, in this order, right behind the code at the next
//! multiple of eight: there perf looks for them, and there the arena really puts them.

use gimli::constants::{DW_EH_PE_datarel, DW_EH_PE_pcrel, DW_EH_PE_sdata4, DW_EH_PE_udata4};
use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, EhFrame as Section, EndianVec, Error,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{DwEhPe, LittleEndian};

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

/// One CIE, one FDE for the whole code, the terminator, and a header with a table of one row.
pub(crate) fn eh_frame(
    mut cie: CommonInformationEntry,
    code_size: usize,
    instructions: &[(u32, CallFrameInstruction)],
) -> Result<EhFrame, Error> {
    let encoding = |form: DwEhPe, base: DwEhPe| DwEhPe(form.0 | base.0);
    let place_relative = encoding(DW_EH_PE_sdata4, DW_EH_PE_pcrel);
    cie.fde_address_encoding = place_relative;
    let length = u32::try_from(code_size).map_err(|_| Error::ValueTooLarge)?;
    // The section stands at 0 here, so the code lies below.
    let code = 0_u64.wrapping_sub(offset_behind(code_size) as u64);
    let mut fde = FrameDescriptionEntry::new(Address::Constant(code), length);
    for (offset, instruction) in instructions {
        fde.add_instruction(*offset, instruction.clone());
    }
    let mut table = FrameTable::default();
    let cie = table.add_cie(cie);
    table.add_fde(cie, fde);
    let mut section = Section(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut section)?;
    let mut eh_frame = section.0.into_vec();
    eh_frame.extend([0; 4]);
    eh_frame.resize(eh_frame.len().next_multiple_of(8), 0);

    // The FDE follows the CIE, whose length stands in front of it.
    let fde_at = eh_frame.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) + 4;
    let size = eh_frame.len() as i32;
    let mut eh_frame_hdr =
        vec![1, place_relative.0, DW_EH_PE_udata4.0, encoding(DW_EH_PE_sdata4, DW_EH_PE_datarel).0];
    eh_frame_hdr.extend((-size - 4).to_le_bytes());
    eh_frame_hdr.extend(1_u32.to_le_bytes());
    eh_frame_hdr.extend((-size - offset_behind(code_size) as i32).to_le_bytes());
    eh_frame_hdr.extend((fde_at as i32 - size).to_le_bytes());
    eh_frame_hdr.extend([0; 4]);
    Ok(EhFrame { eh_frame, eh_frame_hdr })
}
