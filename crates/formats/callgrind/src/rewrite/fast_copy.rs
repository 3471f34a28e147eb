//! Copies many lines at once, unchanged.

use std::io::Write;
use std::rc::Rc;

use super::cursor::ResolvedName;
use super::{CopiedCode, Mode, Next, Rewriter};
use crate::code_map::CodeMap;
use crate::context::UNKNOWN;
use crate::line::Kind;
use crate::scan::{reference, skip_call, skip_costs, skip_jump};

/// What is behind the lines that were parsed, and their number.
type Advance<'a> = Option<(&'a [u8], u64)>;

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Whether lines may be copied unchanged.
    pub(super) fn can_fast_copy(&self) -> bool {
        self.mode == Mode::Copy(CopiedCode::Known)
            && self.cursor.in_function
            && self.next == Next::Own
            && self.is_in_step
            && !self.cursor.is_due()
            && self.target.is_empty()
    }

    /// Copies complete lines from the beginning of `waiting` as far as they may be copied unchanged. Returns their
    /// total size and their number.
    pub(super) fn fast_copy(&mut self, waiting: &[u8]) -> (usize, u64) {
        let (rest, lines) = match self.columns.count() {
            1 => self.fast_copy_columns::<1>(waiting),
            2 => self.fast_copy_columns::<2>(waiting),
            3 => self.fast_copy_columns::<3>(waiting),
            4 => self.fast_copy_columns::<4>(waiting),
            _ => (waiting, 0),
        };
        let bytes = waiting.len().saturating_sub(rest.len());
        self.out.extend_from_slice(waiting.get(..bytes).unwrap_or_default());
        (bytes, lines)
    }

    fn fast_copy_columns<'a, const N: usize>(&mut self, waiting: &'a [u8]) -> (&'a [u8], u64) {
        let (mut rest, mut count) = (waiting, 0_u64);
        let mut last = [0; N];
        last.iter_mut().zip(self.last.0).for_each(|(last, value)| *last = value);
        // The number of the file of the lines, if it differs from the function's file.
        let mut line_file = None;
        loop {
            while let Some(behind) = skip_costs(rest, &mut last) {
                rest = behind;
                count = count.wrapping_add(1);
            }
            let taken = match rest.first() {
                Some(b'c') => self.fast_copy_call(rest, &mut last),
                Some(b'j') => self.fast_copy_jump(rest, &mut last),
                Some(b'f' | b'o') => match self.fast_copy_file(rest) {
                    Some((file, behind)) => {
                        line_file = Some(file);
                        Some((behind, 1))
                    }
                    None => {
                        let taken = self.fast_copy_function(rest);
                        line_file = line_file.filter(|_| taken.is_none());
                        taken
                    }
                },
                Some(b'\n') => rest.get(1..).map(|behind| (behind, 1)),
                _ => None,
            };
            let Some((behind, lines)) = taken else { break };
            rest = behind;
            count = count.wrapping_add(lines);
        }
        self.last.0.iter_mut().zip(last).for_each(|(value, last)| *value = last);
        if let Some(defined) = line_file.and_then(|file| self.names.defined(Kind::File, file)) {
            self.cursor.line_file = Rc::clone(defined.name);
        }
        (rest, count)
    }

    /// Parses a call of a function that callgrind knew, with its costs.
    #[inline]
    fn fast_copy_call<'a, const N: usize>(
        &self,
        text: &'a [u8],
        last: &mut [u64; N],
    ) -> Advance<'a> {
        let (mut rest, mut lines) = (text, 0_u64);
        let mut object = None;
        loop {
            lines = lines.wrapping_add(1);
            match rest {
                [b'c', b'f', b'n', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    let function = self.names.defined(Kind::Function, id)?;
                    if function.may_be_unknown
                        && object.unwrap_or_else(|| *self.cursor.object.name == *UNKNOWN)
                    {
                        return None;
                    }
                    rest = behind;
                    break;
                }
                [b'c', b'f', b'i' | b'l', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    self.names.defined(Kind::File, id)?;
                    rest = behind;
                }
                [b'c', b'o', b'b', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    object = Some(self.names.defined(Kind::Object, id)?.may_be_unknown);
                    rest = behind;
                }
                _ => return None,
            }
        }
        let behind = skip_costs(skip_call(rest, last)?, last)?;
        Some((behind, lines.wrapping_add(2)))
    }

    #[inline]
    fn fast_copy_jump<'a, const N: usize>(
        &mut self,
        text: &'a [u8],
        last: &mut [u64; N],
    ) -> Advance<'a> {
        if let Some(behind) = skip_jump(text, last) {
            self.summary.has_jumps = true;
            return Some((behind, 2));
        }
        let (kind, name) = match text {
            [b'j', b'f', b'i', b'=', name @ ..] => (Kind::File, name),
            [b'j', b'f', b'n', b'=', name @ ..] => (Kind::Function, name),
            _ => return None,
        };
        let (id, behind) = reference(name)?;
        self.names.defined(kind, id)?;
        Some((behind, 1))
    }

    /// Parses a change to another file within a function, and returns the file's number.
    #[inline]
    fn fast_copy_file<'a>(&self, text: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let [b'f', b'i' | b'e', b'=', name @ ..] = text else { return None };
        let (id, behind) = reference(name)?;
        self.names.defined(Kind::File, id)?;
        Some((id, behind))
    }

    /// Parses the beginning of a function that callgrind knew.
    fn fast_copy_function<'a>(&mut self, text: &'a [u8]) -> Advance<'a> {
        let (mut rest, mut lines) = (text, 0_u64);
        let (mut object, mut file) = (None, None);
        loop {
            lines = lines.wrapping_add(1);
            match rest {
                [b'f', b'n', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    let function = self.names.defined(Kind::Function, id)?;
                    let in_unknown = match object {
                        Some((_, in_unknown)) => in_unknown,
                        None => *self.cursor.object.name == *UNKNOWN,
                    };
                    let in_announced = object.is_none() && self.cursor.is_announced;
                    if function.may_be_unknown && in_unknown || in_announced {
                        return None;
                    }
                    rest = behind;
                    break;
                }
                [b'f', b'l', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    self.names.defined(Kind::File, id)?;
                    file = Some(id);
                    rest = behind;
                }
                [b'o', b'b', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    let defined = self.names.defined(Kind::Object, id)?;
                    if defined.is_announced {
                        return None;
                    }
                    object = Some((id, defined.may_be_unknown));
                    rest = behind;
                }
                _ => return None,
            }
        }
        let given = |kind, id| {
            let defined = self.names.defined(kind, id)?;
            Some(ResolvedName { id: Some(id), name: Rc::clone(defined.name) })
        };
        if let Some(given) = object.and_then(|(id, _)| given(Kind::Object, id)) {
            self.cursor.object = given;
            self.cursor.is_announced = false;
        }
        if let Some(given) = file.and_then(|id| given(Kind::File, id)) {
            self.cursor.file = given;
        }
        self.cursor.line_file = Rc::clone(&self.cursor.file.name);
        Some((rest, lines))
    }
}
