//! Call frame information as gimli interprets it: the oracle.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use code_image::{Endian, Target, VisibleCode};
use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, RunTimeEndian, UnwindSection};
use jit_code::{Code, Unwind};
use object::{Object, ObjectSection};

fn endian(target: Target) -> RunTimeEndian {
    match target.endian {
        Endian::Little => RunTimeEndian::Little,
        Endian::Big => RunTimeEndian::Big,
    }
}

fn address_size(target: Target) -> u8 {
    if target.is_64 { 8 } else { 4 }
}

fn section(target: Target, bytes: &[u8]) -> EhFrame<EndianSlice<'_, RunTimeEndian>> {
    let mut section = EhFrame::new(bytes, endian(target));
    section.set_address_size(address_size(target));
    section
}

/// The rule for every address that the section describes, as text. Expressions are included as their bytes. Where
/// FDEs overlap, the first by address applies.
pub fn rules(target: Target, bytes: &[u8], address: u64, text: u64) -> BTreeMap<u64, String> {
    let section = section(target, bytes);
    let bases = BaseAddresses::default().set_eh_frame(address).set_text(text);
    let mut found = Vec::new();
    let mut entries = section.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        let context = format!(
            "return {:?} signal {}",
            fde.cie().return_address_register(),
            fde.is_signal_trampoline()
        );
        let mut unwind = gimli::UnwindContext::new();
        let mut table = fde.rows(&section, &bases, &mut unwind).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let code = |e: &gimli::UnwindExpression<usize>| {
                format!("{:x?}", e.get(&section).unwrap().0.slice())
            };
            let cfa = match row.cfa() {
                gimli::CfaRule::Expression(e) => code(e),
                rule => format!("{rule:?}"),
            };
            let mut registers: Vec<String> = row
                .registers()
                .map(|(register, rule)| match rule {
                    gimli::RegisterRule::Expression(e) => format!("{register:?} at {}", code(e)),
                    gimli::RegisterRule::ValExpression(e) => format!("{register:?} is {}", code(e)),
                    rule => format!("{register:?} {rule:?}"),
                })
                .collect();
            registers.sort();
            let rule = format!("{context} cfa {cfa} args {} {registers:?}", row.saved_args_size());
            // an FDE may extend past the end of what it describes
            let end = row.end_address().min(fde.end_address());
            found.push((row.start_address()..end, rule));
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    let mut rules = BTreeMap::new();
    for (range, rule) in found {
        for address in range {
            rules.entry(address).or_insert_with(|| rule.clone());
        }
    }
    rules
}

/// The rules of the codes, by address in the process, clipped to their visible parts.
pub fn rules_of_codes(target: Target, codes: &[VisibleCode<'_>]) -> BTreeMap<u64, String> {
    let mut all = BTreeMap::new();
    for code in codes {
        let Code { address, size, unwind: Some(Unwind::EhFrame(eh_frame)), .. } = code.code else {
            continue;
        };
        let behind = address + size.next_multiple_of(8);
        let rules = rules(target, eh_frame, behind, address);
        all.extend(rules.into_iter().filter(|(address, _)| code.visible.contains(address)));
    }
    all
}

/// The rules in an image, by virtual address. Every one is also looked up in the search table.
pub fn rules_of_image(target: Target, path: &Path) -> BTreeMap<u64, String> {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let frames = file.section_by_name(".eh_frame").unwrap();
    let rules = rules(target, frames.data().unwrap(), frames.address(), 0x1000);

    look_up(target, path, rules.keys().copied());
    rules
}

/// Looks up every address in the search table of an image.
///
/// # Panics
/// If the table does not lead to an FDE for the address.
pub fn look_up(target: Target, path: &Path, addresses: impl IntoIterator<Item = u64>) {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let frames = file.section_by_name(".eh_frame").unwrap();
    let header = file.section_by_name(".eh_frame_hdr").unwrap();
    let bases =
        BaseAddresses::default().set_eh_frame(frames.address()).set_eh_frame_hdr(header.address());
    let section = section(target, frames.data().unwrap());
    let parsed = gimli::EhFrameHdr::new(header.data().unwrap(), endian(target));
    let parsed = parsed.parse(&bases, address_size(target)).unwrap();
    assert_eq!(parsed.eh_frame_ptr(), gimli::Pointer::Direct(frames.address()));
    let table = parsed.table().unwrap();
    for address in addresses {
        let cie = EhFrame::<EndianSlice<'_, _>>::cie_from_offset;
        let fde = table.fde_for_address(&section, &bases, address, cie).unwrap();
        assert!(fde.contains(address), "{address:#x}");
    }
}
