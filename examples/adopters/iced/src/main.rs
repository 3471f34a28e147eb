//! Assembles two functions with iced-x86, announces them, and runs them for some seconds of
//! processor time: `iced-jit SECONDS`. What is for jitscribe is in `announce` and `Lines`.

use std::error::Error;
use std::ffi::c_long;
use std::panic::Location;

use iced_x86::code_asm::{
    CodeAssembler, CodeAssemblerResult, ecx, r12, r12d, rax, rbp, rbx, rcx, rdi, rsp,
};
use iced_x86::{BlockEncoderOptions, IcedError};
use jitscribe::{Code, Line, LoadedCode, Row, Scribe, Unwind};
use memmap2::{Mmap, MmapMut};

unsafe extern "C" {
    /// Of C: microseconds of processor time. On a busy machine, real time would be too few samples.
    safe fn clock() -> c_long;
}

/// For each instruction, the line of this file that made it. A compiler has the line of its
/// source instead.
#[derive(Default)]
struct Lines(Vec<u32>);

impl Lines {
    #[track_caller]
    fn at(&mut self, written: Result<(), IcedError>) -> Result<(), IcedError> {
        self.0.push(Location::caller().line());
        written
    }
}

/// A part of what was assembled. Numbers are of instructions: iced says their offsets at the end.
struct Function {
    name: &'static str,
    first: usize,
    end: usize,
    /// The frame behind an instruction: its number, and the row without its offset.
    frame: Vec<(usize, Row<'static>)>,
}

/// A leaf, which leaves the stack pointer alone.
fn mix(a: &mut CodeAssembler, lines: &mut Lines) -> Result<Function, IcedError> {
    let first = lines.0.len();
    lines.at(a.mov(rax, rdi))?;
    lines.at(a.mov(ecx, 40))?;
    let mut step = a.create_label();
    a.set_label(&mut step)?;
    lines.at(a.imul_3(rax, rax, 31))?;
    lines.at(a.xor(rax, rcx))?;
    lines.at(a.dec(ecx))?;
    lines.at(a.jne(step))?;
    lines.at(a.ret())?;
    Ok(Function { name: "mix of words", first, end: lines.0.len(), frame: Vec::new() })
}

/// The sum of `mix(n)` to `mix(1)`. Its frame is described at each instruction.
fn rounds(
    a: &mut CodeAssembler,
    lines: &mut Lines,
    mix: iced_x86::code_asm::CodeLabel,
) -> Result<Function, IcedError> {
    const RBP: u16 = 6;
    const RSP: u16 = 7;
    const RBP_SAVED: &[(u16, i32)] = &[(RBP, -16)];
    const ALL_SAVED: &[(u16, i32)] = &[(RBP, -16), (3, -24), (12, -32)];
    let first = lines.0.len();
    let mut frame = Vec::new();
    lines.at(a.push(rbp))?;
    frame.push((lines.0.len(), Row::new(0, RSP, 16).saved(RBP_SAVED)));
    lines.at(a.mov(rbp, rsp))?;
    frame.push((lines.0.len(), Row::new(0, RBP, 16).saved(RBP_SAVED)));
    lines.at(a.push(rbx))?;
    lines.at(a.push(r12))?;
    frame.push((lines.0.len(), Row::new(0, RBP, 16).saved(ALL_SAVED)));
    lines.at(a.mov(rbx, rdi))?;
    lines.at(a.xor(r12d, r12d))?;
    let mut round = a.create_label();
    a.set_label(&mut round)?;
    lines.at(a.mov(rdi, rbx))?;
    lines.at(a.call(mix))?;
    lines.at(a.add(r12, rax))?;
    lines.at(a.dec(rbx))?;
    lines.at(a.jne(round))?;
    lines.at(a.mov(rax, r12))?;
    lines.at(a.pop(r12))?;
    lines.at(a.pop(rbx))?;
    lines.at(a.pop(rbp))?;
    frame.push((lines.0.len(), Row::new(0, RSP, 8)));
    lines.at(a.ret())?;
    Ok(Function { name: "rounds", first, end: lines.0.len(), frame })
}

fn announce(
    scribe: Scribe,
    memory: &Mmap,
    made: &CodeAssemblerResult,
    lines: &Lines,
    function: &Function,
) -> LoadedCode {
    // One that iced had to rewrite, as its target is too far away, has the offset `u32::MAX`. It
    // counts as a part of the one before it.
    let offsets = &made.inner.new_instruction_offsets;
    let offset = |number: usize| {
        let known = offsets[number..].iter().find(|&&offset| offset != u32::MAX);
        known.map_or(made.inner.code_buffer.len(), |&offset| offset as usize)
    };
    let start = offset(function.first);
    let within = |number| (offset(number) - start) as u32;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/main.rs");
    let table: Vec<_> = (function.first..function.end)
        .filter(|&number| offsets[number] != u32::MAX)
        .map(|number| Line::new(within(number), file, lines.0[number]))
        .collect();
    let rows: Vec<_> = function
        .frame
        .iter()
        .map(|(number, row)| {
            let mut row = row.clone();
            row.offset = within(*number);
            row
        })
        .collect();
    let bytes = &memory[start..offset(function.end)];
    scribe.load(&Code::new(bytes).named(function.name).lines(&table).unwind(Unwind::Rows(&rows)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: c_long = std::env::args().nth(1).ok_or("usage: iced-jit SECONDS")?.parse()?;
    let mut a = CodeAssembler::new(64)?;
    let mut lines = Lines::default();
    let mut mix_label = a.create_label();
    a.set_label(&mut mix_label)?;
    let mix = mix(&mut a, &mut lines)?;
    let mut rounds_label = a.create_label();
    a.set_label(&mut rounds_label)?;
    let rounds = rounds(&mut a, &mut lines, mix_label)?;

    // The memory first: what iced assembles runs at one address.
    let mut memory = MmapMut::map_anon(4096)?;
    let made = a.assemble_options(
        memory.as_ptr() as u64,
        BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS,
    )?;
    memory[..made.inner.code_buffer.len()].copy_from_slice(&made.inner.code_buffer);
    let memory = memory.make_exec()?;
    let scribe = Scribe::global();
    let _announced =
        [&mix, &rounds].map(|function| announce(scribe, &memory, &made, &lines, function));

    let entry = made.label_ip(&rounds_label)? as usize - memory.as_ptr() as usize;
    // SAFETY: `rounds` is a function of one number, and preserves what it must.
    let run: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(memory[entry..].as_ptr()) };
    let end = clock() + seconds * 1_000_000;
    let mut result = 0;
    while clock() < end {
        result ^= run(1000);
    }
    println!("{}", result & 1);
    Ok(())
}
