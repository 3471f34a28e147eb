//! `code-source-info`: the positions and the inlined calls of a code.

use std::iter::FusedIterator;

use crate::Cause;
use crate::fields::{Fields, address, decimal};

/// The source positions of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceInfo<'a> {
    /// The address of the code.
    pub address: u64,
    /// The number of the script of its own function.
    pub script: u64,
    /// Offset of the function's beginning in the script.
    pub start: u64,
    /// Offset of the function's end in the script.
    pub end: u64,
    positions: &'a [u8],
    inlinings: &'a [u8],
    functions: &'a [u8],
}

/// From `code_offset` on, up to the next position, the code comes from this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Offset from the start of the code.
    pub code_offset: u32,
    /// Offset in the script of the function that was inlined, or of the code's own function.
    pub script_offset: Option<u32>,
    /// The number of the inlined call; `None` in the code's own function.
    pub inlining: Option<u32>,
}

/// An inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlining {
    /// The number of the function that was called.
    pub function: Option<u32>,
    /// Offset of the call in the script of the caller.
    pub script_offset: Option<u32>,
    /// The number of the inlined call that contains this one; `None` in the code's own function.
    pub parent: Option<u32>,
}

/// A list that is not in the form that V8 writes. What is before that place was returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a list of positions, inlined calls or functions is not valid")]
pub struct Malformed;

impl<'a> SourceInfo<'a> {
    pub(crate) fn parse(mut fields: Fields<'a>) -> Result<Self, Cause> {
        Ok(Self {
            address: fields.address("address")?,
            script: fields.decimal("number of the script")?,
            start: fields.decimal("start of the function")?,
            end: fields.decimal("end of the function")?,
            positions: fields.text("list of positions")?,
            inlinings: fields.next().unwrap_or_default(),
            functions: fields.next().unwrap_or_default(),
        })
    }

    /// Whether anything was inlined into the code.
    #[must_use]
    pub fn has_inlinings(&self) -> bool {
        !self.inlinings.is_empty()
    }

    /// The positions, ascending by offset in the code.
    pub fn positions(&self) -> impl Iterator<Item = Result<Position, Malformed>> + use<'a> {
        List::new(self.positions, |list| {
            Some(Position {
                code_offset: list.required(b'C')?,
                script_offset: list.number(b'O')?,
                inlining: list.optional(b'I')?,
            })
        })
    }

    /// The inlined calls; positions and other calls refer to them by number.
    pub fn inlinings(&self) -> impl Iterator<Item = Result<Inlining, Malformed>> + use<'a> {
        List::new(self.inlinings, |list| {
            Some(Inlining {
                function: list.number(b'F')?,
                script_offset: list.number(b'O')?,
                parent: list.optional(b'I')?,
            })
        })
    }

    /// The addresses of the inlined functions: see [`CodeCreation::function`](crate::CodeCreation::function). Inlined
    /// calls refer to them by number.
    pub fn functions(&self) -> impl Iterator<Item = Result<u64, Malformed>> + use<'a> {
        List::new(self.functions, |list| {
            let address = address(list.after(b'S')?)?;
            Some(address)
        })
    }
}

/// A list whose items consist of letters, each with a number behind it.
#[derive(Clone, Copy, Debug)]
struct Letters<'a> {
    rest: &'a [u8],
}

impl<'a> Letters<'a> {
    /// What is behind `letter`, up to the next letter of a list.
    fn after(&mut self, letter: u8) -> Option<&'a [u8]> {
        let rest = self.rest.strip_prefix(&[letter])?;
        let end = rest.iter().position(|byte| b"COIFS".contains(byte)).unwrap_or(rest.len());
        let (value, behind) = rest.split_at_checked(end)?;
        self.rest = behind;
        Some(value)
    }

    /// A number that must be there.
    fn required(&mut self, letter: u8) -> Option<u32> {
        self.number(letter)?
    }

    /// A number that V8 leaves out, or writes as -1, where there is none.
    fn number(&mut self, letter: u8) -> Option<Option<u32>> {
        match self.after(letter)? {
            b"" | b"-1" => Some(None),
            digits => Some(Some(u32::try_from(decimal(digits)?).ok()?)),
        }
    }

    /// A letter that may be missing.
    fn optional(&mut self, letter: u8) -> Option<Option<u32>> {
        if self.rest.first() == Some(&letter) { self.number(letter) } else { Some(None) }
    }
}

/// The items of a list. Ends behind the first that is not valid.
struct List<'a, T> {
    letters: Letters<'a>,
    item: fn(&mut Letters<'a>) -> Option<T>,
}

impl<'a, T> List<'a, T> {
    fn new(list: &'a [u8], item: fn(&mut Letters<'a>) -> Option<T>) -> Self {
        Self { letters: Letters { rest: list }, item }
    }
}

impl<T> Iterator for List<'_, T> {
    type Item = Result<T, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.letters.rest.is_empty() {
            return None;
        }
        let item = (self.item)(&mut self.letters);
        if item.is_none() {
            self.letters.rest = &[];
        }
        Some(item.ok_or(Malformed))
    }
}

impl<T> FusedIterator for List<'_, T> {}
