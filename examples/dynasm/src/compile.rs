//! Machine code for x86-64, made with dynasm-rs.
//!
//! The head is an index of 16 bits into a tape of 64 KiB, so that no program can leave the tape.
//! In all code `rbx` is the tape, `r12` the head and `r13` what the call out gets.
#![allow(unsafe_code, reason = "compiled code is called")]

use std::ops::Range;

use dynasmrt::{AssemblyOffset, DynasmApi, DynasmLabelApi, ExecutableBuffer, dynasm};
use jitscribe::Line;

use crate::parse::{Do, Instruction};

const TAPE: usize = 1 << 16;

/// A program as machine code.
pub(crate) struct Compiled {
    code: ExecutableBuffer,
    /// The program itself, and each of its outermost loops.
    pub(crate) functions: Vec<Function>,
}

/// One contiguous piece of code.
pub(crate) struct Function {
    pub(crate) name: String,
    range: Range<usize>,
    /// Offset in the piece, line, column.
    places: Vec<(u32, u32, u32)>,
}

impl Function {
    /// Its line table.
    pub(crate) fn lines<'a>(&self, file: &'a str) -> Vec<Line<'a>> {
        let places = self.places.iter();
        places.map(|&(offset, line, column)| Line::new(offset, file, line).column(column)).collect()
    }
}

type Entry = extern "sysv64" fn(output: *mut Vec<u8>, tape: *mut u8);

extern "sysv64" fn put(output: *mut Vec<u8>, byte: u8) {
    // SAFETY: only compiled code calls this, with the pointer that `run` gave to it, which is of a vector that
    // nobody else uses until the call has returned.
    unsafe { (*output).push(byte) }
}

impl Compiled {
    /// The bytes of a function, where they run.
    pub(crate) fn bytes(&self, function: &Function) -> &[u8] {
        &self.code[function.range.clone()]
    }

    /// Runs the program, and gives what it wrote.
    pub(crate) fn run(&self) -> Vec<u8> {
        let mut tape = vec![0_u8; TAPE];
        let mut output = Vec::new();
        let entry = self.code.ptr(AssemblyOffset(self.functions[0].range.start));
        // SAFETY: there `program` put a function of this type.
        let entry: Entry = unsafe { std::mem::transmute(entry) };
        entry(&raw mut output, tape.as_mut_ptr());
        output
    }
}

pub(crate) fn program(program: &[Instruction]) -> std::io::Result<Compiled> {
    let mut ops = dynasmrt::x64::Assembler::new()?;
    let mut functions = Vec::new();

    let start = ops.offset().0;
    let mut places = Vec::new();
    let mut loops = Vec::new();
    dynasm!(ops
        ; .arch x64
        ; push rbp
        ; mov rbp, rsp
        ; push rbx
        ; push r12
        ; push r13
        ; sub rsp, 8
        ; mov r13, rdi
        ; mov rbx, rsi
        ; xor r12d, r12d
    );
    let mut at = 0;
    while let Some(instruction) = program.get(at) {
        places.push(place(&ops, start, instruction));
        if let Do::Open(close) = instruction.what {
            let label = ops.new_dynamic_label();
            dynasm!(ops; .arch x64; call =>label);
            loops.push((label, at..close + 1));
            at = close;
        } else {
            emit(&mut ops, instruction.what);
        }
        at += 1;
    }
    dynasm!(ops
        ; .arch x64
        ; add rsp, 8
        ; pop r13
        ; pop r12
        ; pop rbx
        ; pop rbp
        ; ret
    );
    functions.push(Function { name: "program".to_owned(), range: start..ops.offset().0, places });

    for (label, body) in loops {
        let start = ops.offset().0;
        let first = program[body.start];
        dynasm!(ops; .arch x64; =>label; push rbp; mov rbp, rsp);
        let mut places = vec![(0, first.line, first.column)];
        let mut open = Vec::new();
        for instruction in &program[body] {
            places.push(place(&ops, start, instruction));
            match instruction.what {
                Do::Open(_) => {
                    let (back, out) = (ops.new_dynamic_label(), ops.new_dynamic_label());
                    dynasm!(ops; .arch x64; cmp BYTE [rbx + r12], 0; je =>out; =>back);
                    open.push((back, out));
                }
                Do::Close(_) => {
                    // The parser has paired them.
                    let Some((back, out)) = open.pop() else { continue };
                    dynasm!(ops; .arch x64; cmp BYTE [rbx + r12], 0; jne =>back; =>out);
                }
                what => emit(&mut ops, what),
            }
        }
        dynasm!(ops; .arch x64; pop rbp; ret);
        let name = format!("loop at {}:{}", first.line, first.column);
        functions.push(Function { name, range: start..ops.offset().0, places });
    }

    let code = ops.finalize().map_err(|_| std::io::Error::other("the code is still in use"))?;
    Ok(Compiled { code, functions })
}

fn place(ops: &dynasmrt::x64::Assembler, start: usize, at: &Instruction) -> (u32, u32, u32) {
    // Code is a few bytes for each byte of the source, and this for 4 GiB of it is not met.
    ((ops.offset().0 - start) as u32, at.line, at.column)
}

/// What is no loop.
fn emit(ops: &mut dynasmrt::x64::Assembler, what: Do) {
    match what {
        // Only the lowest 16 bits of the head are changed, and count.
        Do::Move(by) => dynasm!(ops; .arch x64; add r12w, by as i16),
        Do::Add(by) => dynasm!(ops; .arch x64; add BYTE [rbx + r12], by as i8),
        Do::Output => dynasm!(ops
            ; .arch x64
            ; mov rdi, r13
            ; movzx esi, BYTE [rbx + r12]
            ; mov rax, QWORD put as *const () as i64
            ; call rax
        ),
        Do::Input => dynasm!(ops; .arch x64; mov BYTE [rbx + r12], 0),
        Do::Open(_) | Do::Close(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(source: &str) -> String {
        let program = program(&crate::parse::program(source.as_bytes()).unwrap()).unwrap();
        String::from_utf8(program.run()).unwrap()
    }

    #[test]
    fn programs_do_what_they_say() {
        assert_eq!(output("++++++++[>++++++++<-]>+.+.,++++++++++."), "AB\n");
        // A loop that is never entered, nested ones, and the tape's beginning, before which is its end.
        let wraps = "[.]++++[>++++[>++++<-]<-]>>.<<<+[>]".to_owned() + &"+".repeat(33) + ".";
        assert_eq!(output(&wraps), "@!");
        assert_eq!(output(include_str!("../loops.bf")), "A\n");
    }

    #[test]
    fn lines_ascend() {
        let source = include_str!("../loops.bf");
        let program = program(&crate::parse::program(source.as_bytes()).unwrap()).unwrap();
        assert!(program.functions.len() > 3);
        for function in &program.functions {
            let lines = function.lines("loops.bf");
            assert!(lines.is_sorted_by_key(|line| line.offset), "{}", function.name);
            assert!(
                lines.iter().all(|line| (line.offset as usize) < program.bytes(function).len())
            );
        }
    }
}
