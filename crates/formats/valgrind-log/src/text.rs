//! The messages of memcheck, helgrind and DRD, as human-readable text.
//!
//! ```text
//! ==2377== Invalid read of size 4
//! ==2377==    at 0x4A40044: ???
//! ==2377==    by 0x10938F: main (prog.c:57)
//! ```
//!
//! Each line contains its process id, so one stream may contain lines of several processes and the output of the
//! program itself. Suppressions (`--gen-suppressions`) contain no addresses and stay unchanged.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::rc::Rc;

use crate::frame::{address, describe, number, unknown};
use crate::pieces::{Piece, Pieces};
use crate::stack::{Stack, StackEntry, Stacks};
use crate::{Counts, Error, Named, Namer};

/// Maximum number of processes whose stacks are tracked. Beyond this, lines are still named.
const MANY: usize = 1 << 16;

/// Copies the messages, and names the addresses that `namer` knows. An inlined call becomes a separate line with the
/// same address, as Valgrind prints it.
///
/// # Errors
/// When something cannot be read or written. Any bytes are valid messages.
pub fn rewrite(
    input: impl BufRead,
    mut output: impl Write,
    namer: &mut impl Namer,
) -> Result<Counts, Error> {
    let mut lines = Pieces::new(input, b'\n');
    let mut counts = Counts::default();
    let mut stacks = Stacks::default();
    let mut processes: HashMap<u32, Process> = HashMap::new();
    let mut new = Vec::new();
    while let Some(Piece { bytes, part }) = lines.next()? {
        let line = if part { None } else { Line::parse(bytes) };
        let Some(line) = line else {
            output.write_all(bytes).map_err(Error::Write)?;
            continue;
        };
        if let Some(parent) = line.said.strip_prefix(b"Parent PID: ").and_then(number)
            && let Ok(parent) = parent.try_into()
        {
            namer.parent(line.pid, parent);
        }
        let many = processes.len() >= MANY;
        if many && !processes.contains_key(&line.pid) {
            processes.clear();
        }
        let process = processes.entry(line.pid).or_default();
        let Some(frame) = line.frame() else {
            process.end(&mut stacks, &mut counts);
            process.record = loss_record(line.said).map(Box::from);
            if let Some(limit) = line.said.strip_prefix(b"   --num-callers=").and_then(number) {
                stacks.set_limit(limit);
            }
            output.write_all(bytes).map_err(Error::Write)?;
            continue;
        };
        if frame.innermost {
            process.end(&mut stacks, &mut counts);
        }
        let mut named: Option<Rc<Named>> = None;
        let here = unknown(frame.text);
        if let Some(here) = here {
            named = namer.name(Some(line.pid), here.address).filter(|it| !it.frames.is_empty());
        }
        let stack = process.stack.get_or_insert_default();
        match (&named, here) {
            (Some(named), Some(here)) => {
                stack.push(&StackEntry::Named(named), &mut counts);
                line.write(&frame, here.length, named, &mut new);
                output.write_all(&new).map_err(Error::Write)?;
                continue;
            }
            (None, Some(_)) => stack.push(&StackEntry::Unknown, &mut counts),
            (_, None) => {
                let said = frame.text.get(frame.length..).unwrap_or_default();
                stack.push(&StackEntry::Text(said), &mut counts);
            }
        }
        output.write_all(bytes).map_err(Error::Write)?;
    }
    for mut process in processes.into_values() {
        process.end(&mut stacks, &mut counts);
    }
    stacks.finish(&mut counts);
    output.flush().map_err(Error::Write)?;
    Ok(counts)
}

/// The state of a process's messages.
#[derive(Debug, Default)]
struct Process {
    /// The stack that is being printed.
    stack: Option<Stack>,
    /// The kind of the loss record whose stack comes next.
    record: Option<Box<[u8]>>,
}

impl Process {
    /// Ends the current stack, if there is one.
    fn end(&mut self, stacks: &mut Stacks, counts: &mut Counts) {
        if let Some(stack) = self.stack.take() {
            stacks.end(stack, self.record.take().as_deref(), counts);
        }
    }
}

/// The kind of a loss record, from its first line: `300 bytes in 3 blocks are definitely lost in loss record 1 of 1`.
fn loss_record(said: &[u8]) -> Option<&[u8]> {
    let end = find(said, b" in loss record ")?;
    let before = said.get(..end)?;
    let start = find(before, b" block").and_then(|at| at.checked_add(6));
    start.and_then(|start| before.get(start..))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// A line of Valgrind's output.
struct Line<'a> {
    /// The process that it belongs to.
    pid: u32,
    /// What the program printed before it, without a line end.
    before: &'a [u8],
    /// Valgrind's prefix: `==2377== `.
    prefix: &'a [u8],
    /// The message.
    said: &'a [u8],
    /// The line end.
    end: &'a [u8],
}

/// A line that is a frame of a stack.
struct StackFrame<'a> {
    /// Whether it is the first of its stack.
    innermost: bool,
    /// The blanks before `at` or `by`.
    indent: &'a [u8],
    /// Everything behind `at` or `by`.
    text: &'a [u8],
    /// Length of the address in bytes.
    length: usize,
}

impl<'a> Line<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        let end = bytes.get(body.len()..)?;
        // The mark is usually at the beginning. If not, the program printed a line without a line end.
        let mut from = 0_usize;
        loop {
            let rest = body.get(from..)?;
            let start = from.checked_add(rest.windows(2).position(is_mark)?)?;
            if let Some((pid, behind)) = prefix(body.get(start..)?) {
                let (before, line) = body.split_at_checked(start)?;
                let (prefix, said) = line.split_at_checked(behind)?;
                return Some(Self { pid, before, prefix, said, end });
            }
            from = start.checked_add(1)?;
        }
    }

    fn frame(&self) -> Option<StackFrame<'a>> {
        let text = self.said.trim_ascii_start();
        let indent = self.said.get(..self.said.len().checked_sub(text.len())?)?;
        let (innermost, text) = match text.split_at_checked(3)? {
            (b"at ", text) => (true, text),
            (b"by ", text) => (false, text),
            _ => return None,
        };
        let (_, length) = address(text)?;
        text.get(length..)?.starts_with(b": ").then_some(())?;
        Some(StackFrame { innermost, indent, text, length })
    }

    /// Writes the lines for an address that now has a name.
    fn write(&self, frame: &StackFrame<'_>, length: usize, named: &Named, out: &mut Vec<u8>) {
        out.clear();
        out.extend(self.before);
        for (number, one) in named.frames.iter().enumerate() {
            out.extend(self.prefix);
            out.extend(frame.indent);
            out.extend(if frame.innermost && number == 0 { b"at " } else { b"by " });
            out.extend(frame.text.get(..length).unwrap_or_default());
            out.extend(b": ");
            describe(one, out);
            out.extend(self.end);
        }
    }
}

fn is_mark(pair: &[u8]) -> bool {
    matches!(pair, b"==" | b"--" | b"**")
}

/// Parses Valgrind's prefix of a line: `==2377== `, `--2377-- `, `**2377** `, with `--time-stamp=yes`
/// `==00:00:00:00.810 2377== `. Returns the process id, and the length of the prefix. An empty message may lack the
/// blank.
fn prefix(text: &[u8]) -> Option<(u32, usize)> {
    let (mark, rest) = text.split_at_checked(2)?;
    // The maximum: two marks, a time, a process id.
    let within = rest.get(..40).unwrap_or(rest);
    let length = within.windows(2).position(|pair| pair == mark)?;
    let inside = rest.get(..length)?;
    let pid = inside.rsplit(|&byte| byte == b' ').next()?;
    let pid = u32::try_from(number(pid)?).ok()?;
    let behind = rest.get(length.checked_add(2)?..)?;
    let blank = usize::from(behind.starts_with(b" "));
    Some((pid, length.checked_add(4)?.checked_add(blank)?))
}
