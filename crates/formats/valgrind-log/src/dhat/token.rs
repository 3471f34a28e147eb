//! JSON as a sequence of tokens, which together are the file byte for byte.

use std::io::{self, BufRead};

use crate::Error;

/// Maximum length of a string in DHAT's files.
const LONGEST: usize = 1 << 20;
/// Maximum length of a token that is not a string.
const RUN: usize = 1 << 16;

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A string with its quotes, as it is written.
    Text(&'a [u8]),
    /// One of `{}[],:`.
    Mark(u8),
    /// A number or a word, including the blanks around it.
    Other(&'a [u8]),
}

/// Reads tokens.
#[derive(Debug)]
pub struct Tokens<R> {
    input: R,
    token: Vec<u8>,
    offset: u64,
}

/// The state within a token.
#[derive(Clone, Copy)]
enum State {
    Start,
    Text,
    Escaped,
    Other,
}

impl State {
    /// How many of `bytes` belong to the token, and whether it ends there.
    fn go_on(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut taken = 0_usize;
        if let Self::Start = self {
            taken = 1;
            match bytes.first() {
                Some(&byte) if is_mark(byte) => return (taken, true),
                Some(b'"') => *self = Self::Text,
                Some(_) => *self = Self::Other,
                None => return (0, false),
            }
        }
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let found = match self {
                Self::Start | Self::Other => {
                    let found = rest.iter().position(|&byte| is_mark(byte) || byte == b'"');
                    return match found {
                        Some(found) => (taken.saturating_add(found), true),
                        None => (bytes.len(), false),
                    };
                }
                Self::Text => rest.iter().position(|&byte| matches!(byte, b'"' | b'\\')),
                Self::Escaped if rest.is_empty() => None,
                Self::Escaped => {
                    *self = Self::Text;
                    taken = taken.saturating_add(1);
                    continue;
                }
            };
            let Some(found) = found else { return (bytes.len(), false) };
            taken = taken.saturating_add(found).saturating_add(1);
            if rest.get(found) == Some(&b'"') {
                return (taken, true);
            }
            *self = Self::Escaped;
        }
    }
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':')
}

impl<R: BufRead> Tokens<R> {
    /// Creates a tokenizer at the beginning of a file.
    pub fn new(input: R) -> Self {
        Self { input, token: Vec::new(), offset: 0 }
    }

    /// The next token; `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Token<'_>>, Error> {
        self.token.clear();
        let begin = self.offset;
        let mut state = State::Start;
        let mut whole = false;
        while !whole {
            let bytes = match self.input.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Read(error)),
            };
            let (taken, ends) = state.go_on(bytes);
            whole = ends;
            self.token.extend_from_slice(bytes.get(..taken).unwrap_or_default());
            self.input.consume(taken);
            self.offset = self.offset.saturating_add(u64::try_from(taken).unwrap_or(u64::MAX));
            match state {
                State::Other => whole |= self.token.len() >= RUN,
                _ if self.token.len() > LONGEST => {
                    let cause = "a string of more than 1 MiB";
                    return Err(Error::Format { offset: begin, cause });
                }
                _ => {}
            }
        }
        Ok(match (self.token.as_slice(), state) {
            ([], _) => None,
            (&[mark], State::Start) => Some(Token::Mark(mark)),
            (text, State::Text) if whole => Some(Token::Text(text)),
            (other, _) => Some(Token::Other(other)),
        })
    }

    /// Passes the rest of the innermost list or object to `take`, except its closing mark.
    pub fn nested(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut depth, mut inside) = (0_u32, Inside::Nothing);
        loop {
            let bytes = match self.input.fill_buf() {
                Ok([]) => return Ok(()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Read(error)),
            };
            let (mut rest, mut ends) = (bytes, false);
            while let Some(found) = rest.iter().position(|&byte| inside.ends_by(byte)) {
                let Some((before, [byte, behind @ ..])) = rest.split_at_checked(found) else {
                    break;
                };
                inside = match (inside, byte) {
                    (Inside::Nothing, b'"') | (Inside::Escape, _) => Inside::Text,
                    (Inside::Nothing, b'[' | b'{') => {
                        depth = depth.saturating_add(1);
                        inside
                    }
                    (Inside::Nothing, _) if depth == 0 => {
                        rest = rest.get(before.len()..).unwrap_or_default();
                        ends = true;
                        break;
                    }
                    (Inside::Nothing, _) => {
                        depth = depth.saturating_sub(1);
                        inside
                    }
                    (Inside::Text, b'"') => Inside::Nothing,
                    (Inside::Text, _) => Inside::Escape,
                };
                rest = behind;
            }
            let taken = if ends { bytes.len().saturating_sub(rest.len()) } else { bytes.len() };
            take(bytes.get(..taken).unwrap_or_default())?;
            self.input.consume(taken);
            self.offset = self.offset.saturating_add(u64::try_from(taken).unwrap_or(u64::MAX));
            if ends {
                return Ok(());
            }
        }
    }
}

/// The position of a byte in skipped text.
#[derive(Clone, Copy)]
enum Inside {
    Nothing,
    Text,
    /// Behind a backslash.
    Escape,
}

impl Inside {
    /// Whether a byte changes the position or the depth.
    fn ends_by(self, byte: u8) -> bool {
        match self {
            // Brackets and braces differ in a single bit.
            Self::Nothing => byte == b'"' || matches!(byte | 0x20, b'{' | b'}'),
            Self::Text => matches!(byte, b'"' | b'\\'),
            Self::Escape => true,
        }
    }
}
