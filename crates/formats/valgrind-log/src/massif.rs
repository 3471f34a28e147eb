//! massif's output: snapshots of the heap, some with a tree of allocation sites.
//!
//! ```text
//! n2: 4568 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
//!  n1: 4096 0x4A40044: ???
//!   n0: 4096 0x10931F: main (prog.c:52)
//! ```
//!
//! A line has its number of children and is indented by its depth. An inlined call is a child with the same address.

use std::io::{BufRead, Write};

use crate::frame::{address, describe, number, unknown};
use crate::pieces::{Piece, Pieces};
use crate::stack::add;
use crate::{Counts, Error, Namer};

/// Maximum depth that inlined calls add to a tree: each of them indents everything below it.
const DEEPEST: usize = 1 << 10;

/// Copies the snapshots, and names the addresses that `namer` knows. The file does not contain its process id. The
/// counts of stacks stay 0.
///
/// # Errors
/// When something cannot be read or written, or if the file is not massif's.
pub fn rewrite(
    input: impl BufRead,
    mut output: impl Write,
    namer: &mut impl Namer,
) -> Result<Counts, Error> {
    let mut lines = Pieces::new(input, b'\n');
    let mut counts = Counts::default();
    // The subtrees that contain the current line and were moved deeper: the indentation of each, and by how much.
    let mut deeper: Vec<(usize, usize)> = Vec::new();
    let (mut first, mut snapshots) = (true, false);
    let mut new = Vec::new();
    while let Some(Piece { bytes, part }) = lines.next()? {
        if std::mem::take(&mut first) && !bytes.starts_with(b"desc:") {
            let cause = "not a massif file: it does not begin with `desc:`";
            return Err(Error::Format { offset: 0, cause });
        }
        snapshots |= bytes.starts_with(b"snapshot=");
        let Some(node) = (if part { None } else { Node::parse(bytes) }) else {
            output.write_all(bytes).map_err(Error::Write)?;
            continue;
        };
        while deeper.pop_if(|(indent, _)| *indent >= node.indent).is_some() {}
        let extra = deeper.last().map_or(0, |&(_, extra)| extra);
        add(&mut counts.frames);
        new.clear();
        let mut named = None;
        if let Some(here) = unknown(node.text) {
            add(&mut counts.unknown);
            named = namer.name(None, here.address).filter(|it| !it.frames.is_empty());
        }
        let Some(named) = named else {
            node.begin(node.children, extra, &mut new);
            new.extend(node.text);
            new.extend(node.end);
            output.write_all(&new).map_err(Error::Write)?;
            continue;
        };
        add(&mut counts.named);
        if named.doubtful {
            add(&mut counts.doubtful);
        }
        let address = address(node.text).map_or(0, |(_, length)| length);
        // The code's own frame is the last, and is always shown.
        let space = DEEPEST.saturating_sub(extra).saturating_add(1);
        let frames = named.frames.len();
        let shown = named.frames.iter().skip(frames.saturating_sub(space));
        let count = frames.min(space);
        for (number, frame) in shown.enumerate() {
            let is_last = number.saturating_add(1) == count;
            let children = if is_last { node.children } else { b"1" };
            node.begin(children, extra.saturating_add(number), &mut new);
            new.extend(node.text.get(..address).unwrap_or_default());
            new.extend(b": ");
            describe(frame, &mut new);
            new.extend(node.end);
        }
        let inlined = count.saturating_sub(1);
        if inlined > 0 {
            deeper.push((node.indent, extra.saturating_add(inlined)));
        }
        output.write_all(&new).map_err(Error::Write)?;
    }
    if !snapshots {
        let cause = "not a massif file: it has no snapshot";
        return Err(Error::Format { offset: 0, cause });
    }
    output.flush().map_err(Error::Write)?;
    Ok(counts)
}

/// A line of a tree.
struct Node<'a> {
    indent: usize,
    /// The number of children that follow.
    children: &'a [u8],
    /// The size of the memory.
    size: &'a [u8],
    text: &'a [u8],
    /// The line end.
    end: &'a [u8],
}

impl<'a> Node<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let end = bytes.get(body.len()..)?;
        // massif indents only with spaces. Other white space would be lost in the output.
        let indent = body.iter().take_while(|&&byte| byte == b' ').count();
        let node = body.get(indent..)?;
        let node = node.strip_prefix(b"n")?;
        let (children, rest) = split_at(node, b": ")?;
        let (size, text) = split_at(rest, b" ")?;
        number(children).and(number(size))?;
        Some(Self { indent, children, size, text, end })
    }

    /// Writes the beginning of a line that is `extra` levels deeper.
    fn begin(&self, children: &[u8], extra: usize, out: &mut Vec<u8>) {
        out.resize(out.len().saturating_add(self.indent).saturating_add(extra), b' ');
        out.push(b'n');
        out.extend(children);
        out.extend(b": ");
        out.extend(self.size);
        out.push(b' ');
    }
}

/// What is before and behind the first `between`.
fn split_at<'a>(text: &'a [u8], between: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(between.len()).position(|window| window == between)?;
    Some((text.get(..at)?, text.get(at.checked_add(between.len())?..)?))
}
