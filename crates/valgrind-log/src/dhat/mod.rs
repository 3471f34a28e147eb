//! What DHAT writes: JSON, with a table of frames (`ftbl`) and lists of places in it (`fs`).
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
//! A call that was inlined is a frame of its own with the same address. The table stands at the end,
//! so the file is read twice: [`survey`], then [`rewrite`].

mod token;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::rc::Rc;

use crate::frame::{describe, number, unknown};
use crate::stack::add;
use crate::{Counts, Error, Frame, Named, Namer};

use token::{Token, Tokens};

/// What the first reading found.
#[derive(Debug, Default)]
pub struct Survey {
    /// What is known of the frames that had no name, by place in the table.
    named: HashMap<u64, At>,
    /// Where the frames of inlined calls' callers go, by place of what they called: in a row, behind
    /// all that the table had.
    callers: HashMap<u64, u64>,
    counts: Counts,
}

/// An address, and what is known of it.
#[derive(Debug)]
struct At {
    address: u64,
    named: Rc<Named>,
}

/// Where in the file a token stands.
#[derive(Debug, Default)]
struct Place {
    depth: u32,
    /// The key in the outermost object.
    outer: Key,
    /// The key in an object of an array there.
    inner: Key,
    /// The last string, if a colon behind it would make it a key.
    last: Key,
}

/// A key that is of interest.
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

    /// Whether this is an element of the table of frames.
    fn in_table(&self) -> bool {
        self.depth == 2 && self.outer == Key::Table
    }

    /// Whether this is an element of a list of frames.
    fn in_frames(&self) -> bool {
        self.depth == 4 && self.outer == Key::Points && self.inner == Key::Frames
    }
}

/// Looks for the frames that have no name and asks `namer` for it.
///
/// # Errors
/// When the file cannot be read, or is none of DHAT's.
pub fn survey(input: impl BufRead, namer: &mut impl Namer) -> Result<Survey, Error> {
    let mut tokens = Tokens::new(input);
    let mut place = Place::default();
    let mut found = Survey::default();
    let (mut is_dhat, mut pid, mut frames) = (false, None, 0_u64);
    let mut inlined: Vec<(u64, u64)> = Vec::new();
    while let Some(token) = tokens.next()? {
        place.take(&token);
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
                        let callers = named.frames.len().saturating_sub(1);
                        if let Ok(callers @ 1..) = u64::try_from(callers) {
                            inlined.push((frames, callers));
                        }
                        found.named.insert(frames, At { address: here.address, named });
                    }
                }
                frames = frames.saturating_add(1);
            }
            _ => {}
        }
    }
    if !is_dhat {
        let cause = "no file of DHAT's: it has no dhatFileVersion";
        return Err(Error::Format { offset: 0, cause });
    }
    for (place, callers) in inlined {
        found.callers.insert(place, frames);
        frames = frames.saturating_add(callers);
    }
    Ok(found)
}

/// Copies the file, with the names that [`survey`] found for it. Of the counts, those of stacks stay
/// 0.
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
    // In the order in which they were given places.
    let mut callers: Vec<(u64, u64)> =
        found.callers.iter().map(|(&called, &callers)| (callers, called)).collect();
    callers.sort_unstable();
    let mut new = Vec::new();
    while let Some(token) = tokens.next()? {
        new.clear();
        let was_in_table = place.in_table();
        place.take(&token);
        match token {
            Token::Text(text) if place.in_table() => {
                match found.named.get(&frame).and_then(|at| Some((at, at.named.frames.first()?))) {
                    Some((at, first)) => push_frame(at.address, first, &mut new),
                    None => new.extend(text),
                }
                frame = frame.saturating_add(1);
            }
            Token::Other(text) if place.in_frames() => {
                new.extend(text);
                let called = number(text.trim_ascii());
                let at = called.and_then(|called| found.named.get(&called));
                let first = called.and_then(|called| found.callers.get(&called));
                if let (Some(at), Some(&first)) = (at, first) {
                    for (caller, _) in (first..).zip(at.named.frames.iter().skip(1)) {
                        new.extend(format!(",{caller}").bytes());
                    }
                }
            }
            Token::Mark(b']') if was_in_table => {
                for (_, called) in callers.drain(..) {
                    let Some(At { address, named }) = found.named.get(&called) else { continue };
                    for frame in named.frames.iter().skip(1) {
                        new.push(b',');
                        push_frame(*address, frame, &mut new);
                        new.extend(b"\n ");
                    }
                }
                new.push(b']');
            }
            Token::Mark(mark) => new.push(mark),
            Token::Text(text) | Token::Other(text) => new.extend(text),
        }
        output.write_all(&new).map_err(Error::Write)?;
    }
    output.flush().map_err(Error::Write)?;
    Ok(found.counts)
}

/// What is between the quotes of a string without escapes.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Appends an element of the table.
fn push_frame(address: u64, frame: &Frame, out: &mut Vec<u8>) {
    let mut text = format!("0x{address:X}: ").into_bytes();
    describe(frame, &mut text);
    out.push(b'"');
    for c in String::from_utf8_lossy(&text).chars() {
        if matches!(c, '"' | '\\') {
            out.push(b'\\');
        }
        out.extend(c.encode_utf8(&mut [0; 4]).bytes());
    }
    out.push(b'"');
}
