//! Converts a code from the C struct to the Rust type. Only its tables are copied, because Rust lays out their
//! rows differently. Tables of the usual size are copied to the stack.
#![allow(unsafe_code)]

use smallvec::SmallVec;

use crate::code::{Code, Inlined, Line};
use crate::outcome::Failure;
use crate::raw;
use crate::text::{LossyText, Str};
use crate::unwind::{RowBuffer, SavedBuffer};

/// The value of [`Inlined::parent`] for no parent.
const NO_PARENT: u32 = u32::MAX;

// The part that is on the stack: 3 KiB in all.
type Lines<'a> = SmallVec<[jitscribe::Line<'a>; 32]>;
type Calls<'a> = SmallVec<[jitscribe::Inlined<'a>; 8]>;
type Ranges = SmallVec<[std::ops::Range<u32>; 16]>;
type Texts<'a> = SmallVec<[LossyText<'a>; 4]>;

/// Calls `announce` with the code.
///
/// # Safety
/// What `given` points to fulfils the contract of the header: it is readable, and is not written to during the
/// call.
#[inline]
pub(crate) unsafe fn with_code<R>(
    given: &Code,
    announce: impl FnOnce(&jitscribe::Code<'_>) -> R,
) -> Result<R, Failure> {
    let mut files = Texts::new();
    let (mut lines, mut ir_lines) = (Lines::new(), Lines::new());
    // SAFETY: guaranteed by the caller, for all that is read here.
    unsafe {
        let mut code = place(given)?;
        code = code.named_bytes(given.name.bytes()?).kind(kind(given.kind));
        let tier = if given.tier.size == 0 { LossyText::Same("") } else { given.tier.text()? };
        code = code.tier(&tier);
        texts(&mut files, raw::slice(given.files, given.file_count)?)?;
        let mut names = SmallVec::<[&str; 4]>::new();
        names.try_reserve(files.len()).map_err(|_| Failure::Memory)?;
        names.extend(files.iter().map(|file| &**file));
        // Without files, the index 0 of a zeroed struct means none.
        let files = if names.is_empty() { &[""] } else { names.as_slice() };
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

/// Adds the unwind info, which most often is only a number.
///
/// # Safety
/// As for [`with_code`].
#[inline]
unsafe fn with_unwind<R>(
    given: &Code,
    code: jitscribe::Code<'_>,
    announce: impl FnOnce(&jitscribe::Code<'_>) -> R,
) -> Result<R, Failure> {
    let (mut saved, mut rows) = (SavedBuffer::default(), RowBuffer::default());
    // SAFETY: guaranteed by the caller.
    match unsafe { given.unwind.decode(&mut saved, &mut rows) }? {
        None => Ok(announce(&code)),
        Some(unwind) => Ok(announce(&code.unwind(unwind))),
    }
}

/// # Safety
/// As for [`with_code`].
#[inline]
unsafe fn place<'a>(given: &Code) -> Result<jitscribe::Code<'a>, Failure> {
    if given.bytes.is_null() {
        return match given.address {
            0 => Err(Failure::Null),
            address => Ok(jitscribe::Code::at(address, given.size)),
        };
    }
    let size = usize::try_from(given.size).map_err(|_| Failure::Argument)?;
    // SAFETY: guaranteed by the caller.
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
/// As for [`with_code`].
#[inline]
unsafe fn texts(to: &mut Texts<'_>, given: &[Str]) -> Result<(), Failure> {
    to.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
    for text in given {
        // SAFETY: guaranteed by the caller.
        to.push(unsafe { text.text() }?);
    }
    Ok(())
}

#[inline]
fn table<'a>(to: &mut Lines<'a>, given: &[Line], files: &[&'a str]) -> Result<(), Failure> {
    to.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
    let mut are_known = true;
    to.extend(given.iter().map(|line| {
        let file = files.get(line.file as usize);
        are_known &= file.is_some();
        jitscribe::Line::new(line.offset, file.copied().unwrap_or_default(), line.line)
            .column(line.column)
    }));
    if are_known { Ok(()) } else { Err(Failure::Argument) }
}

/// Collects the names and ranges of all calls, in the order of the calls.
///
/// # Safety
/// As for [`with_code`].
unsafe fn inlined(
    given: &[Inlined],
    names: &mut Texts<'_>,
    ranges: &mut Ranges,
) -> Result<(), Failure> {
    names.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
    for call in given {
        // SAFETY: guaranteed by the caller.
        let (name, of_call) =
            unsafe { (call.name.text()?, raw::slice(call.ranges, call.range_count)?) };
        names.push(name);
        ranges.try_reserve(of_call.len()).map_err(|_| Failure::Memory)?;
        ranges.extend(of_call.iter().map(|range| range.start..range.end));
    }
    Ok(())
}

/// Builds the calls, which refer to their names and ranges.
fn refer<'a>(
    to: &mut Calls<'a>,
    given: &[Inlined],
    files: &[&'a str],
    names: &'a [LossyText<'_>],
    ranges: &'a [std::ops::Range<u32>],
) -> Result<(), Failure> {
    to.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
    let mut ranges = ranges;
    for (call, name) in given.iter().zip(names) {
        let (own, rest) = ranges.split_at_checked(call.range_count).ok_or(Failure::Argument)?;
        ranges = rest;
        let file = files.get(call.file as usize).ok_or(Failure::Argument)?;
        let inlined = jitscribe::Inlined::new(name, own)
            .called_from(file, call.line)
            .column(call.column)
            .within((call.parent != NO_PARENT).then_some(call.parent));
        to.push(inlined);
    }
    Ok(())
}
