//! The stubs by which functions of other files are called, which have no symbols.

use std::collections::HashMap;

use jitdump::ReadAt;
use object::elf::{EM_AARCH64, EM_X86_64, SHT_DYNSYM};

use crate::elf::{Elf, Section};
use crate::pods;
use crate::symbol::MOST_SYMBOLS;

/// The size of a stub in `.plt` and `.plt.sec`.
const STUB: u64 = 16;
/// No more bytes of `.plt.got` are read: it has the few functions that are called, and whose address is taken.
const MOST_CODE: u64 = 1 << 20;
/// `endbr64`, with which stubs begin where control flow is protected.
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// A stub.
#[derive(Clone, Copy, Debug)]
pub struct Stub {
    pub start: u64,
    pub size: u64,
    /// Where the name of the function that it calls is in the file.
    pub name: u64,
}

/// The stubs of a file, in any order.
pub fn of(elf: &Elf<impl ReadAt>) -> Vec<Stub> {
    let mut stubs = Vec::new();
    let table = elf.sections().iter().find(|section| section.kind == SHT_DYNSYM);
    let Some((table, strings)) = table.and_then(|table| Some((table, elf.linked(table)?.offset)))
    else {
        return stubs;
    };
    let mut names = Vec::new();
    let mut left = MOST_SYMBOLS;
    _ = elf.each_symbol(table, &mut left, |symbol| names.push(symbol.name));
    // Symbol 0 is none: the relocation is of a function of this file.
    let name_of = |symbol: u32| {
        let place = usize::try_from(symbol).ok().filter(|&place| place > 0);
        let name = place.and_then(|place| names.get(place).copied())?;
        Some(strings.saturating_add(name.into()))
    };
    add_in_order(elf, &name_of, &mut stubs);
    add_by_slot(elf, &name_of, &mut stubs);
    stubs
}

/// Those of `.plt` and `.plt.sec`, which are in the order of their relocations.
fn add_in_order(
    elf: &Elf<impl ReadAt>,
    name_of: &dyn Fn(u32) -> Option<u64>,
    stubs: &mut Vec<Stub>,
) {
    let Some(relocations) = elf.section(b".rela.plt") else { return };
    let mut called = Vec::new();
    elf.each_relocation(relocations, |_, symbol| called.push(name_of(symbol)));
    // The first entry of `.plt` finds functions when they are first called; `.plt.sec` has none such.
    let head = if elf.machine() == EM_AARCH64.0 { 32 } else { STUB };
    for (name, head) in [(&b".plt"[..], head), (b".plt.sec", 0)] {
        let Some(section) = elf.section(name) else { continue };
        let starts = (head..section.size).step_by(16);
        for (into, name) in starts.zip(&called) {
            let Some(name) = *name else { continue };
            stubs.push(Stub { start: section.address.saturating_add(into), size: STUB, name });
        }
    }
}

/// Those of `.plt.got` of x86-64: each jumps to the address in a slot that the dynamic linker fills when it loads the file.
fn add_by_slot(
    elf: &Elf<impl ReadAt>,
    name_of: &dyn Fn(u32) -> Option<u64>,
    stubs: &mut Vec<Stub>,
) {
    let is_x86_64 = elf.machine() == EM_X86_64.0;
    let Some(section) = elf.section(b".plt.got").filter(|_| is_x86_64) else { return };
    let Some(relocations) = elf.section(b".rela.dyn") else { return };
    let jumps = jumps(elf, section);
    if jumps.is_empty() {
        return;
    }
    let mut slots: HashMap<u64, Option<u64>> =
        jumps.iter().map(|&(.., slot)| (slot, None)).collect();
    elf.each_relocation(relocations, |slot, symbol| {
        if let Some(name) = slots.get_mut(&slot) {
            *name = name_of(symbol);
        }
    });
    for (start, size, slot) in jumps {
        let Some(&Some(name)) = slots.get(&slot) else { continue };
        stubs.push(Stub { start, size, name });
    }
}

/// The address and size of each stub, and the slot that it jumps through.
fn jumps(elf: &Elf<impl ReadAt>, section: &Section) -> Vec<(u64, u64, u64)> {
    let mut code = vec![0; usize::try_from(section.size.min(MOST_CODE)).unwrap_or(0)];
    if pods::exact(elf.file(), &mut code, section.offset).is_err() {
        return Vec::new();
    }
    // Stubs with `endbr64` are twice as large.
    let size = if code.starts_with(&ENDBR) { 16 } else { 8 };
    let starts = (section.address..).step_by(size);
    let jump = |(start, stub): (u64, &[u8])| {
        let rest = stub.strip_prefix(&ENDBR).unwrap_or(stub);
        // `bnd jmp`, or `jmp`.
        let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
        let [0xff, 0x25, a, b, c, d, after @ ..] = rest else { return None };
        let read = stub.len().saturating_sub(after.len());
        let behind = start.saturating_add(u64::try_from(read).ok()?);
        let slot = behind.checked_add_signed(i32::from_le_bytes([*a, *b, *c, *d]).into())?;
        Some((start, u64::try_from(size).ok()?, slot))
    };
    starts.zip(code.chunks_exact(size)).filter_map(jump).collect()
}
