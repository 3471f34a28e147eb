//! Instructions of x86 and x86-64.

use iced_x86::{
    ConstantOffsets, Decoder, DecoderOptions, Instruction, MemorySize, Mnemonic, OpKind, Register,
};

use super::words::Words;

/// A distance from a register that is no part of a structure or a frame.
const FAR: u64 = 1 << 20;

pub fn mask(bits: u32, address: u64, bytes: &mut [u8]) {
    let code = bytes.to_vec();
    let size = if bits == 64 { 8 } else { 4 };
    let mut words = Words::new(&code, address, size);
    // Words are known as soon as an instruction before them loads them; those before it are known when the code is decoded again.
    walk(bits, address, &mut words, &code, |found| match found {
        Found::Instruction(_, instruction, _) => loaded_address(instruction),
        Found::Word(_) => None,
    });
    let inside = words.inside();
    let mut mask = |begin: usize, size: usize| {
        if let Some(field) = bytes.get_mut(begin..begin.saturating_add(size)) {
            field.fill(0);
        }
    };
    let mut between = Vec::new();
    walk(bits, address, &mut words, &code, |found| {
        let (start, instruction, places) = match found {
            Found::Word(offset) => {
                between.push(offset);
                return None;
            }
            Found::Instruction(start, instruction, places) => (start, instruction, places),
        };
        let is_wide = instruction.op_kinds().any(|kind| kind == OpKind::Immediate64);
        let is_outside =
            is_branch(instruction) && !inside.contains(&instruction.near_branch_target());
        if places.has_immediate() && (is_wide || is_outside) {
            mask(start.saturating_add(places.immediate_offset()), places.immediate_size());
        }
        let is_far = instruction.is_ip_rel_memory_operand()
            && !inside.contains(&instruction.ip_rel_memory_address());
        // `mov rax, [0x7f0000000000]` has its address as a displacement of 8 bytes.
        let is_address = is_far || places.displacement_size() == 8 || is_from_roots(instruction);
        if places.has_displacement() && is_address {
            mask(start.saturating_add(places.displacement_offset()), places.displacement_size());
        }
        None
    });
    for offset in between {
        words.write(offset, bytes);
    }
}

/// What is at an offset of a code.
enum Found<'i> {
    Word(usize),
    Instruction(usize, &'i Instruction, ConstantOffsets),
}

/// Passes over the code from its beginning to its end. `each` may return a place that an instruction loads a word from.
fn walk(
    bits: u32,
    address: u64,
    words: &mut Words<'_>,
    code: &[u8],
    mut each: impl FnMut(Found<'_>) -> Option<u64>,
) {
    let mut decoder = Decoder::with_ip(bits, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut start = 0;
    while start < code.len() {
        if let Some(end) = words.end_of(start) {
            each(Found::Word(start));
            start = end;
            continue;
        }
        // The position is within the bytes, so that it is accepted.
        let _ = decoder.set_position(start);
        decoder.set_ip(address.wrapping_add(start as u64));
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            // The next byte may be the first of an instruction.
            start = start.saturating_add(1);
            continue;
        }
        let end = start.saturating_add(instruction.len());
        if let Some(word) = words.first_loaded(start.saturating_add(1)..end) {
            // What looks like an instruction that reaches into a word is padding.
            start = word;
            continue;
        }
        let places = decoder.get_constant_offsets(&instruction);
        if let Some(place) = each(Found::Instruction(start, &instruction, places)) {
            words.load(place);
        }
        start = end;
    }
}

fn is_branch(instruction: &Instruction) -> bool {
    matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    )
}

/// Where an instruction loads what may be an address from: `mov rax, [rip+8]`, `jmp [rip]`.
fn loaded_address(instruction: &Instruction) -> Option<u64> {
    let is_load = match instruction.mnemonic() {
        Mnemonic::Mov => {
            instruction.op0_kind() == OpKind::Register
                && instruction.memory_size() == MemorySize::UInt64
        }
        Mnemonic::Call | Mnemonic::Jmp => instruction.op0_kind() == OpKind::Memory,
        _ => false,
    };
    let is_load = is_load && instruction.is_ip_rel_memory_operand();
    is_load.then(|| instruction.ip_rel_memory_address())
}

/// Whether an instruction forms the address of something that is far from what r13 points to. There V8 has the roots of its heap, and it writes addresses of its
/// own program as distances from them: `lea rbx, [r13-0x117ccd90]`.
fn is_from_roots(instruction: &Instruction) -> bool {
    instruction.memory_base() == Register::R13
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64().cast_signed().unsigned_abs() >= FAR
}
