//! The messages of memcheck, helgrind and DRD with `--xml=yes`.
//!
//! A frame without `<fn>` gets the elements that valgrind would have written: `<obj>`, `<fn>`,
//! `<dir>`, `<file>`, `<line>`, in this order (`docs/internals/xml-output-protocol4.txt`).

use std::io::{BufRead, Write};

use crate::frame::{address, number};
use crate::pieces::{Piece, Pieces};
use crate::stack::{Stack, StackEntry, Stacks};
use crate::{Counts, Error, Frame, Namer};

/// A longer frame is left unchanged.
const LONGEST: usize = 1 << 16;

/// Copies the messages, and names the addresses that `namer` knows. An inlined call becomes a separate frame with the
/// same address, as Valgrind writes it.
///
/// # Errors
/// When something cannot be read or written. Any bytes are valid messages.
pub fn rewrite(
    input: impl BufRead,
    mut output: impl Write,
    namer: &mut impl Namer,
) -> Result<Counts, Error> {
    let mut pieces = Pieces::new(input, b'>');
    let mut counts = Counts::default();
    let mut stacks = Stacks::default();
    let mut process = None;
    let mut stack: Option<Stack> = None;
    let mut record: Option<Box<[u8]>> = None;
    // The frame that is being read, including the blanks before it and its start tag.
    let mut held: Option<Vec<u8>> = None;
    let mut new = Vec::new();
    while let Some(Piece { bytes, part }) = pieces.next()? {
        let (text, tag) = split(bytes, part);
        if let Some(frame) = &mut held {
            frame.extend(bytes);
            if part || frame.len() > LONGEST {
                output.write_all(frame).map_err(Error::Write)?;
                held = None;
            } else if tag == b"</frame>" {
                let stack = stack.get_or_insert_default();
                let one = XmlFrame::parse(frame);
                one.write(frame, process, namer, stack, &mut counts, &mut new);
                output.write_all(&new).map_err(Error::Write)?;
                held = None;
            }
            continue;
        }
        if tag == b"<frame>" {
            held = Some(bytes.to_vec());
            continue;
        }
        match tag {
            b"</pid>" => process = number(text).and_then(|pid| pid.try_into().ok()),
            b"</ppid>" => {
                let parent = number(text).and_then(|pid| pid.try_into().ok());
                if let (Some(pid), Some(parent)) = (process, parent) {
                    namer.parent(pid, parent);
                }
            }
            b"</arg>" => {
                if let Some(limit) = text.strip_prefix(b"--num-callers=").and_then(number) {
                    stacks.set_limit(limit);
                }
            }
            b"<error>" => record = None,
            b"</kind>" => record = text.starts_with(b"Leak_").then(|| text.into()),
            b"<stack>" => stack = Some(Stack::default()),
            b"</stack>" => {
                if let Some(stack) = stack.take() {
                    stacks.end(stack, record.take().as_deref(), &mut counts);
                }
            }
            _ => {}
        }
        output.write_all(bytes).map_err(Error::Write)?;
    }
    if let Some(frame) = held {
        output.write_all(&frame).map_err(Error::Write)?;
    }
    stacks.finish(&mut counts);
    output.flush().map_err(Error::Write)?;
    Ok(counts)
}

/// The text before a tag, and the tag; no tag if the piece has none.
fn split(bytes: &[u8], part: bool) -> (&[u8], &[u8]) {
    let start = bytes.iter().rposition(|&byte| byte == b'<').filter(|_| !part);
    start.and_then(|start| bytes.split_at_checked(start)).unwrap_or((bytes, b""))
}

/// Positions in a frame.
struct XmlFrame {
    /// The address, if it can be parsed.
    address: Option<u64>,
    /// Where the blanks before the element with the address begin, and where the element begins.
    element: (usize, usize),
    /// Where new elements are inserted: behind the address, and behind the object file if there is one.
    place: usize,
    has_object: bool,
    has_function: bool,
}

impl XmlFrame {
    fn parse(frame: &[u8]) -> Self {
        let find = |tag: &[u8]| frame.windows(tag.len()).position(|window| window == tag);
        let behind = |tag: &[u8]| find(tag).and_then(|at| at.checked_add(tag.len()));
        let begin = find(b"<ip>").unwrap_or(0);
        let text = |from: &[u8], to: &[u8]| frame.get(behind(from)?..find(to)?);
        let address = text(b"<ip>", b"</ip>").and_then(|text| {
            let (address, length) = address(text)?;
            (length == text.len()).then_some(address)
        });
        let before = frame.get(..begin).unwrap_or_default();
        let blanks = before.trim_ascii_end().len();
        let object = behind(b"</obj>");
        Self {
            address,
            element: (blanks, begin),
            place: object.or(behind(b"</ip>")).unwrap_or(0),
            has_object: object.is_some(),
            has_function: find(b"<fn>").is_some(),
        }
    }

    /// Writes the frame, with the new names.
    fn write(
        &self,
        frame: &[u8],
        process: Option<u32>,
        namer: &mut impl Namer,
        stack: &mut Stack,
        counts: &mut Counts,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        let unknown = self.address.filter(|_| !self.has_function);
        let named = unknown.and_then(|address| namer.name(process, address));
        let named = named.filter(|named| !named.frames.is_empty());
        match (&named, unknown) {
            (Some(named), _) => stack.push(&StackEntry::Named(named), counts),
            (None, Some(_)) => stack.push(&StackEntry::Unknown, counts),
            (None, None) => {
                stack.push(&StackEntry::Text(frame.get(self.place..).unwrap_or_default()), counts);
            }
        }
        let Some(named) = named else { return out.extend(frame) };
        let (blanks, begin) = self.element;
        let between = frame.get(blanks..begin).unwrap_or_default();
        for one in &named.frames {
            out.extend(frame.get(..self.place).unwrap_or_default());
            let mut element = |tag: &str, text: &[u8]| {
                if !text.is_empty() {
                    out.extend(between);
                    out.extend(format!("<{tag}>").bytes());
                    push_escaped(text, out);
                    out.extend(format!("</{tag}>").bytes());
                }
            };
            let Frame { function, folder, file, line, object } = one;
            if !self.has_object {
                element("obj", object);
            }
            element("fn", function);
            if !file.is_empty() && *line != 0 {
                element("dir", folder);
                element("file", file);
                element("line", line.to_string().as_bytes());
            }
            out.extend(frame.get(self.place..).unwrap_or_default());
        }
    }
}

/// Appends text as XML 1.0 allows it. Bytes that are not UTF-8, and control characters, cannot be represented in it.
/// Other characters that are not printable should not be.
fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '<' => out.extend(b"&lt;"),
            '>' => out.extend(b"&gt;"),
            '&' => out.extend(b"&amp;"),
            c if !printable::is_printable(c) => out.push(b'?'),
            c => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}
