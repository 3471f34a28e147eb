//! How to unwind one frame of code for which a debugger has no symbol file yet.

use code_image::jitdump::{Converter, LineTable};
use code_image::whole_frames;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection,
};
use jitdump::{CodeEvent, CodeLoad, Dump};
use serde::Serialize;

use super::live::target_of;
use super::sources::Sources;
use crate::files::Kind;

/// A code, and the rules at one of its addresses.
#[derive(Debug, Serialize)]
pub struct CodeAt {
    /// Its first address.
    start: u64,
    /// `None` if there is no unwind info.
    rules: Option<Rules>,
}

impl CodeAt {
    /// A code without unwind info.
    pub fn plain(start: u64) -> Self {
        Self { start, rules: None }
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
    let contents: Vec<_> = sources.contents().collect();
    contents.into_iter().rev().find_map(|(kind, bytes)| match kind {
        Kind::Jitdump => in_dump(&Dump::parse(bytes).ok()?, address),
        Kind::PerfMap => {
            let entries = perf_map::entries(bytes).flatten();
            let last = entries.filter(|code| (code.address..code.end()).contains(&address)).last();
            last.map(|code| CodeAt::plain(code.address))
        }
    })
}

fn in_dump(dump: &Dump<'_>, address: u64) -> Option<CodeAt> {
    let loads = dump.codes().filter_map(|event| match event {
        Ok(CodeEvent::Load(load)) => Some(load),
        _ => None,
    });
    let is_here = |load: &CodeLoad<'_>| {
        load.died().is_none() && (load.address..load.end()).contains(&address)
    };
    let load = loads.filter(is_here).max_by_key(|load| load.timestamp)?;
    let target = target_of(dump);
    let whole = load.address..load.end();
    let mut converter = Converter::new(target.machine.into());
    let rules = converter.convert(&load, load.address, whole, LineTable::Source, |code| {
        rules_at(&whole_frames(target, code), address)
    });
    Some(CodeAt { start: load.address, rules })
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
