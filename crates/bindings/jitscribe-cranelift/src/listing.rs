//! The intermediate representation as text, and the mapping from code to its lines.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Write};

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, SourceLoc, Value};
use cranelift_codegen::write::{FuncWriter, PlainWriter, decorate_function};

/// A function's CLIF as text, and the line of each instruction.
///
/// The only thing that Cranelift carries with each instruction into the code is one source location.
/// Therefore, the instructions' own locations are replaced by numbers.
/// [`Announcement::listed`](crate::Announcement::listed) restores them.
#[derive(Clone, Debug)]
pub struct Listing {
    text: String,
    /// The number of the first instruction; the others are numbered consecutively.
    first: u32,
    /// For each instruction: the location that the front end gave it, and its line.
    instructions: Vec<(SourceLoc, u32)>,
}

impl Listing {
    /// Prints a function, as the front end made it, and numbers its instructions. Call it when the function
    /// is complete, and before it is compiled.
    pub fn number(function: &mut Function) -> Self {
        let (text, lines) = print(function);
        let first = function.params.base_srcloc();
        let first = if first.is_default() { 0 } else { first.bits() };
        let order: Vec<Inst> =
            function.layout.blocks().flat_map(|block| function.layout.block_insts(block)).collect();
        let mut instructions = Vec::with_capacity(order.len());
        for inst in order {
            let line = lines.get(&inst).copied().unwrap_or(0);
            let number = SourceLoc::new(first.wrapping_add(instructions.len() as u32));
            instructions.push((function.srcloc(inst), line));
            // If this is the number that stands for no location, the instruction gets none.
            function.set_srcloc(inst, number);
        }
        Self { text, first, instructions }
    }

    /// The text. Its lines end with newlines.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The location that the front end gave to the instruction that now has `loc`.
    #[must_use]
    pub fn source(&self, loc: SourceLoc) -> SourceLoc {
        self.instruction(loc).map_or(SourceLoc::default(), |(source, _)| *source)
    }

    /// The line of the text, from 1, with the instruction that now has `loc`.
    #[must_use]
    pub fn line(&self, loc: SourceLoc) -> Option<u32> {
        self.instruction(loc).map(|(_, line)| *line).filter(|line| *line > 0)
    }

    fn instruction(&self, loc: SourceLoc) -> Option<&(SourceLoc, u32)> {
        if loc.is_default() {
            return None;
        }
        self.instructions.get(loc.bits().wrapping_sub(self.first) as usize)
    }
}

fn print(function: &Function) -> (String, HashMap<Inst, u32>) {
    let count = Cell::new(0);
    let mut text = Text { text: String::new(), lines: &count };
    let mut writer = Lines { count: &count, of: HashMap::new() };
    // Writing into a String cannot fail.
    let _ = decorate_function(&mut writer, &mut text, function);
    (text.text, writer.of)
}

/// Text whose lines are counted.
struct Text<'c> {
    text: String,
    lines: &'c Cell<u32>,
}

impl Write for Text<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let lines = part.bytes().filter(|byte| *byte == b'\n').count();
        self.lines.set(self.lines.get() + lines as u32);
        self.text.push_str(part);
        Ok(())
    }
}

/// Writes like Cranelift, and records the line of each instruction.
struct Lines<'c> {
    /// Number of complete lines.
    count: &'c Cell<u32>,
    of: HashMap<Inst, u32>,
}

impl FuncWriter for Lines<'_> {
    fn write_block_header(
        &mut self,
        w: &mut dyn Write,
        func: &Function,
        block: Block,
        indent: usize,
    ) -> fmt::Result {
        PlainWriter.write_block_header(w, func, block, indent)
    }

    fn write_instruction(
        &mut self,
        w: &mut dyn Write,
        func: &Function,
        aliases: &SecondaryMap<Value, Vec<Value>>,
        inst: Inst,
        indent: usize,
    ) -> fmt::Result {
        self.of.insert(inst, self.count.get() + 1);
        PlainWriter.write_instruction(w, func, aliases, inst, indent)
    }
}
