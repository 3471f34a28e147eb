//! DHAT's output: JSON, with a table of frames (`ftbl`) and lists of indices into it (`fs`).
//!
//! ```text
//! ,"pps":
//!  [{"tb":472,"tbk":1
//!   ,"fs":[1,2,3]
//!   }
//!  ]
//! ,"ftbl":
//!  ["[root]"
//!  ,"0x4A40044: ???"
//! ```
//!
//! An inlined call is a separate frame with the same address. The table is at the end, so the file is read twice:
//! [`survey`], then [`rewrite`].

mod token;

use std::io::{BufRead, Write};
use std::rc::Rc;

use crate::frame::{describe, number, unknown};
use crate::stack::add;
use crate::{Counts, Error, Frame, Named, Namer};

use token::{Token, Tokens};

/// The result of the first pass.
#[derive(Debug, Default)]
pub struct Survey {
    /// The names found for frames without a name, in the order of the table.
    named: Vec<At>,
    /// In the same order, the inlined calls: where the frames of their callers are added, consecutively, behind the
    /// original table.
    callers: Vec<Callers>,
    counts: Counts,
}

/// An address, and its names.
#[derive(Debug)]
struct At {
    /// Index in the table.
    frame: u64,
    address: u64,
    named: Rc<Named>,
}

/// The callers of an inlined call.
#[derive(Debug)]
struct Callers {
    /// Index of the call in the table.
    called: u64,
    /// Index of the first caller.
    first: u64,
    /// Index of the call among the named frames.
    named: usize,
}

/// The position of a token in the file's structure.
#[derive(Debug, Default)]
struct Place {
    depth: u32,
    /// The key in the outermost object.
    outer: Key,
    /// The key in an object of an array there.
    inner: Key,
    /// The last string, which is a key if a colon follows.
    last: Key,
}

/// The keys that are used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    Version,
    Pid,
    Points,
    Frames,
    Table,
    #[default]
    Other,
}

impl Key {
    fn of(text: &[u8]) -> Self {
        match text {
            b"\"dhatFileVersion\"" => Self::Version,
            b"\"pid\"" => Self::Pid,
            b"\"pps\"" => Self::Points,
            b"\"fs\"" => Self::Frames,
            b"\"ftbl\"" => Self::Table,
            _ => Self::Other,
        }
    }
}

impl Place {
    fn take(&mut self, token: &Token<'_>) {
        match token {
            Token::Text(text) => self.last = Key::of(text),
            Token::Mark(b':') => match self.depth {
                1 => self.outer = self.last,
                3 => self.inner = self.last,
                _ => {}
            },
            Token::Mark(b'[' | b'{') => self.depth = self.depth.saturating_add(1),
            Token::Mark(b']' | b'}') => self.depth = self.depth.saturating_sub(1),
            Token::Mark(b',') if self.depth == 1 => self.outer = Key::Other,
            Token::Mark(b',') if self.depth == 3 => self.inner = Key::Other,
            _ => {}
        }
    }

    /// Whether the token begins the list of all allocation points.
    fn begins_points(&self, token: &Token<'_>) -> bool {
        self.depth == 2 && self.outer == Key::Points && *token == Token::Mark(b'[')
    }

    /// Whether this position is an element of the table of frames.
    fn in_table(&self) -> bool {
        self.depth == 2 && self.outer == Key::Table
    }

    /// Whether this position is an element of a list of frames.
    fn in_frames(&self) -> bool {
        self.depth == 4 && self.outer == Key::Points && self.inner == Key::Frames
    }
}

/// Finds the frames without a name, and asks `namer` for their names.
///
/// # Errors
/// When the file cannot be read, or is not DHAT's.
pub fn survey(input: impl BufRead, namer: &mut impl Namer) -> Result<Survey, Error> {
    let mut tokens = Tokens::new(input);
    let mut place = Place::default();
    let mut found = Survey::default();
    let (mut is_dhat, mut pid, mut frames) = (false, None, 0_u64);
    while let Some(token) = tokens.next()? {
        place.take(&token);
        if place.begins_points(&token) {
            tokens.nested(|_| Ok(()))?;
            continue;
        }
        is_dhat |= place.depth == 1 && place.outer == Key::Version;
        match token {
            Token::Other(text) if place.depth == 1 && place.outer == Key::Pid => {
                pid = number(text.trim_ascii()).and_then(|pid| pid.try_into().ok()).or(pid);
            }
            Token::Text(text) if place.in_table() => {
                add(&mut found.counts.frames);
                if let Some(here) = quoted(text).and_then(unknown) {
                    add(&mut found.counts.unknown);
                    let named = namer.name(pid, here.address);
                    if let Some(named) = named.filter(|named| !named.frames.is_empty()) {
                        add(&mut found.counts.named);
                        if named.doubtful {
                            add(&mut found.counts.doubtful);
                        }
                        if named.frames.len() > 1 {
                            let place = found.named.len();
                            found.callers.push(Callers { called: frames, first: 0, named: place });
                        }
                        found.named.push(At { frame: frames, address: here.address, named });
                    }
                }
                frames = frames.saturating_add(1);
            }
            _ => {}
        }
    }
    if !is_dhat {
        let cause = "not a DHAT file: it has no dhatFileVersion";
        return Err(Error::Format { offset: 0, cause });
    }
    for callers in &mut found.callers {
        callers.first = frames;
        let count = found.named.get(callers.named).map_or(0, At::callers);
        frames = frames.saturating_add(count);
    }
    Ok(found)
}

/// Copies the file, with the names that [`survey`] found. The counts of stacks stay 0.
///
/// # Errors
/// When something cannot be read or written.
pub fn rewrite(
    input: impl BufRead,
    mut output: impl Write,
    found: &Survey,
) -> Result<Counts, Error> {
    let mut tokens = Tokens::new(input);
    let mut place = Place::default();
    let mut frame = 0_u64;
    let mut named = found.named.iter().peekable();
    let mut callers = found.callers.iter();
    let mut new = Vec::new();
    while let Some(token) = tokens.next()? {
        new.clear();
        let was_in_table = place.in_table();
        place.take(&token);
        match token {
            Token::Text(text) if place.in_table() => {
                let at = named.next_if(|at| at.frame == frame);
                match at.and_then(|at| Some((at, at.named.frames.first()?))) {
                    Some((at, first)) => push_frame(at.address, first, &mut new),
                    None => new.extend(text),
                }
                frame = frame.saturating_add(1);
            }
            Token::Other(text) if place.in_frames() => {
                new.extend(text);
                if let Some(callers) = number(text.trim_ascii()).and_then(|of| found.callers(of)) {
                    let count = found.named.get(callers.named).map_or(0, At::callers);
                    for caller in (callers.first..).zip(0..count).map(|(caller, _)| caller) {
                        new.extend(format!(",{caller}").bytes());
                    }
                }
            }
            Token::Mark(b']') if was_in_table => {
                for at in callers.by_ref().filter_map(|callers| found.named.get(callers.named)) {
                    for frame in at.named.frames.iter().skip(1) {
                        new.push(b',');
                        push_frame(at.address, frame, &mut new);
                        new.extend(b"\n ");
                    }
                }
                new.push(b']');
            }
            // If no callers are added, the lists need no change.
            token if place.begins_points(&token) && found.callers.is_empty() => {
                output.write_all(b"[").map_err(Error::Write)?;
                tokens.nested(|bytes| output.write_all(bytes).map_err(Error::Write))?;
            }
            Token::Mark(mark) => new.push(mark),
            Token::Text(text) | Token::Other(text) => new.extend(text),
        }
        output.write_all(&new).map_err(Error::Write)?;
    }
    output.flush().map_err(Error::Write)?;
    Ok(found.counts)
}

impl At {
    /// The number of its callers' frames.
    fn callers(&self) -> u64 {
        u64::try_from(self.named.frames.len()).unwrap_or(u64::MAX).saturating_sub(1)
    }
}

impl Survey {
    /// The callers of a frame, if it is an inlined call.
    fn callers(&self, frame: u64) -> Option<&Callers> {
        let found = self.callers.binary_search_by_key(&frame, |callers| callers.called);
        self.callers.get(found.ok()?)
    }
}

/// The content of a string without escapes.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Appends an element of the table.
fn push_frame(address: u64, frame: &Frame, out: &mut Vec<u8>) {
    let mut text = format!("0x{address:X}: ").into_bytes();
    describe(frame, &mut text);
    out.push(b'"');
    if text.iter().all(|byte| byte.is_ascii() && !matches!(byte, b'"' | b'\\')) {
        out.extend(&text);
    } else {
        for c in String::from_utf8_lossy(&text).chars() {
            if matches!(c, '"' | '\\') {
                out.push(b'\\');
            }
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
        }
    }
    out.push(b'"');
}
