//! A code from C's terms to Rust's. It is not copied, but for its tables, whose rows Rust lays out in its own way;
//! tables of usual size are laid out on the stack.
#![allow(unsafe_code)]

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::code::{Code, Inlined, Line};
use crate::outcome::Failure;
use crate::raw;
use crate::text::Str;
use crate::unwind::{RowRoom, SavedRoom};

/// What [`Inlined::parent`] is if there is none.
const NO_PARENT: u32 = u32::MAX;

// What lies on the stack: 3 KiB in all.
type Lines<'a> = SmallVec<[jitscribe::Line<'a>; 32]>;
type Calls<'a> = SmallVec<[jitscribe::Inlined<'a>; 8]>;
type Ranges = SmallVec<[std::ops::Range<u32>; 16]>;
type Texts<'a> = SmallVec<[Cow<'a, str>; 4]>;

/// Gives a code to `announce`.
///
/// # Safety
/// What `given` points to keeps to the contract of the header: it is readable, and nobody writes to it meanwhile.
#[inline]
pub(crate) unsafe fn with_code<R>(
    given: &Code,
    announce: impl FnOnce(&jitscribe::Code<'_>) -> R,
) -> Result<R, Failure> {
    let mut files = Texts::new();
    let (mut lines, mut ir_lines) = (Lines::new(), Lines::new());
    // SAFETY: the caller's promise, for all that is read here.
    unsafe {
        let mut code = place(given)?;
        code = code.named_bytes(given.name.bytes()?).kind(kind(given.kind));
        let tier = if given.tier.size == 0 { Cow::Borrowed("") } else { given.tier.text()? };
        code = code.tier(&tier);
        texts(&mut files, raw::slice(given.files, given.file_count)?)?;
        let files: SmallVec<[&str; 4]> = files.iter().map(|file| &**file).collect();
        // Without files, the index that all zeros are means none.
        let files = if files.is_empty() { &[""] } else { files.as_slice() };
        if given.line_count != 0 {
            table(&mut lines, raw::slice(given.lines, given.line_count)?, files)?;
            code = code.lines(&lines);
        }
        if given.ir_line_count != 0 {
            table(&mut ir_lines, raw::slice(given.ir_lines, given.ir_line_count)?, files)?;
            code = code.ir_lines(&ir_lines);
        }
        if given.inlined_count == 0 {
            return with_unwind(given, code, announce);
        }
        let given_calls = raw::slice(given.inlined, given.inlined_count)?;
        let (mut names, mut ranges, mut calls) = (Texts::new(), Ranges::new(), Calls::new());
        inlined(given_calls, &mut names, &mut ranges)?;
        refer(&mut calls, given_calls, files, &names, &ranges)?;
        with_unwind(given, code.inlined(&calls), announce)
    }
}

/// Adds how to unwind through it, which most often is told by a number.
///
/// # Safety
/// As [`with_code`].
#[inline]
unsafe fn with_unwind<R>(
    given: &Code,
    code: jitscribe::Code<'_>,
    announce: impl FnOnce(&jitscribe::Code<'_>) -> R,
) -> Result<R, Failure> {
    let (mut saved, mut rows) = (SavedRoom::default(), RowRoom::default());
    // SAFETY: the caller's promise.
    match unsafe { given.unwind.told(&mut saved, &mut rows) }? {
        None => Ok(announce(&code)),
        Some(unwind) => Ok(announce(&code.unwind(unwind))),
    }
}

/// # Safety
/// As [`with_code`].
#[inline]
unsafe fn place<'a>(given: &Code) -> Result<jitscribe::Code<'a>, Failure> {
    if given.bytes.is_null() {
        return match given.address {
            0 => Err(Failure::Null),
            address => Ok(jitscribe::Code::at(address, given.size)),
        };
    }
    let size = usize::try_from(given.size).map_err(|_| Failure::Argument)?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { raw::slice(given.bytes.cast::<u8>(), size) }?;
    let address = match given.address {
        0 => given.bytes.addr() as u64,
        address => address,
    };
    Ok(jitscribe::Code::new(bytes).runs_at(address))
}

#[inline]
fn kind(number: u32) -> jitscribe::Kind {
    u8::try_from(number).map_or(jitscribe::Kind::Other, jitscribe::Kind::from)
}

/// # Safety
/// As [`with_code`].
#[inline]
unsafe fn texts(to: &mut Texts<'_>, given: &[Str]) -> Result<(), Failure> {
    for text in given {
        // SAFETY: the caller's promise.
        to.push(unsafe { text.text() }?);
    }
    Ok(())
}

#[inline]
fn table<'a>(to: &mut Lines<'a>, given: &[Line], files: &[&'a str]) -> Result<(), Failure> {
    let mut are_known = true;
    to.extend(given.iter().map(|line| {
        let file = files.get(line.file as usize);
        are_known &= file.is_some();
        jitscribe::Line {
            offset: line.offset,
            file: file.copied().unwrap_or_default(),
            line: line.line,
            column: line.column,
        }
    }));
    if are_known { Ok(()) } else { Err(Failure::Argument) }
}

/// The names and ranges of calls, one call's after the other's.
///
/// # Safety
/// As [`with_code`].
unsafe fn inlined(
    given: &[Inlined],
    names: &mut Texts<'_>,
    ranges: &mut Ranges,
) -> Result<(), Failure> {
    for call in given {
        // SAFETY: the caller's promise.
        let (name, of_call) =
            unsafe { (call.name.text()?, raw::slice(call.ranges, call.range_count)?) };
        names.push(name);
        ranges.extend(of_call.iter().map(|range| range.start..range.end));
    }
    Ok(())
}

/// The calls, with their names and ranges.
fn refer<'a>(
    to: &mut Calls<'a>,
    given: &[Inlined],
    files: &[&'a str],
    names: &'a [Cow<'_, str>],
    ranges: &'a [std::ops::Range<u32>],
) -> Result<(), Failure> {
    let mut ranges = ranges;
    for (call, name) in given.iter().zip(names) {
        let (own, rest) = ranges.split_at_checked(call.range_count).ok_or(Failure::Argument)?;
        ranges = rest;
        to.push(jitscribe::Inlined {
            name,
            parent: (call.parent != NO_PARENT).then_some(call.parent),
            file: files.get(call.file as usize).copied().ok_or(Failure::Argument)?,
            line: call.line,
            column: call.column,
            ranges: own,
        });
    }
    Ok(())
}
