//! How to unwind one frame of code for which a debugger has no symbol file yet.

use code_index::AddressSpaceId;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection,
};
use serde::Serialize;

use super::sources::Sources;

/// A code, and the rules at one of its addresses.
#[derive(Debug, Serialize)]
pub struct CodeAt {
    /// Its first address; `None` if nothing is known of it but that it is executable memory without a file.
    start: Option<u64>,
    /// `None` if there is no unwind info.
    rules: Option<Rules>,
}

impl CodeAt {
    /// A code without unwind info.
    pub fn plain(start: u64) -> Self {
        Self { start: Some(start), rules: None }
    }

    /// A code that nothing announces.
    pub fn nameless() -> Self {
        Self { start: None, rules: None }
    }
}

/// Where a frame begins, and what it saved. Registers have the numbers of DWARF.
#[derive(Debug, Serialize)]
struct Rules {
    /// The canonical frame address: a register plus an offset.
    cfa: (u16, i64),
    /// Registers, and the offsets from there at which they are saved.
    saved: Vec<(u16, i64)>,
}

/// The code at `address`, according to the source with the highest precedence.
pub fn code_at(sources: &Sources, address: u64) -> Option<CodeAt> {
    sources.indexed().rev().find_map(|(index, bytes)| {
        let found = index.last(AddressSpaceId::ONLY, address)?;
        let frames = index.describe(&found, bytes)?.frames();
        Some(CodeAt { start: Some(found.start), rules: rules_at(&frames, address) })
    })
}

/// Evaluates frame descriptions with absolute addresses.
fn rules_at(frames: &[u8], address: u64) -> Option<Rules> {
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(8);
    let bases = BaseAddresses::default();
    let cie = EhFrame::cie_from_offset;
    let fde = section.fde_for_address(&bases, address, cie).ok()?;
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(&section, &bases, &mut context, address).ok()?;
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
    let saved = row.registers().filter_map(|(register, rule)| match rule {
        RegisterRule::Offset(offset) => Some((register.0, *offset)),
        _ => None,
    });
    Some(Rules { cfa: (register.0, offset), saved: saved.collect() })
}
