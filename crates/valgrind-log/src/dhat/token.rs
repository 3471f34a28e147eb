//! JSON as a row of tokens that give the file byte for byte.

use std::io::{self, BufRead};

use crate::Error;

/// No string of DHAT's is longer.
const LONGEST: usize = 1 << 20;
/// Of what is no string, as much is handed out at a time.
const RUN: usize = 1 << 16;

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A string with its quotes, as it is written.
    Text(&'a [u8]),
    /// One of `{}[],:`.
    Mark(u8),
    /// A number or a word, and the blanks around it.
    Other(&'a [u8]),
}

/// Reads tokens.
#[derive(Debug)]
pub struct Tokens<R> {
    input: R,
    token: Vec<u8>,
    offset: u64,
}

/// How a token goes on.
#[derive(Clone, Copy)]
enum State {
    Start,
    Text,
    Escaped,
    Other,
}

impl<R: BufRead> Tokens<R> {
    /// Of the beginning of a file.
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
            let mut taken = 0_usize;
            for &byte in bytes {
                let is_mark = matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':');
                let ends = match state {
                    State::Start if is_mark => Some(true),
                    State::Other if is_mark || byte == b'"' => Some(false),
                    State::Start if byte == b'"' => {
                        state = State::Text;
                        None
                    }
                    State::Text if byte == b'"' => Some(true),
                    State::Text if byte == b'\\' => {
                        state = State::Escaped;
                        None
                    }
                    State::Text | State::Escaped => {
                        state = State::Text;
                        None
                    }
                    State::Start | State::Other => {
                        state = State::Other;
                        None
                    }
                };
                if ends != Some(false) {
                    self.token.push(byte);
                    taken = taken.saturating_add(1);
                }
                if ends.is_some() {
                    whole = true;
                    break;
                }
            }
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
}
