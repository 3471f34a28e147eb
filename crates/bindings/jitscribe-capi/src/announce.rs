//! Converts a code from the C struct to the Rust type. Only its tables are copied, because Rust lays out their
//! rows differently. Tables of the usual size are copied to the stack.
#![allow(unsafe_code)]

use smallvec::SmallVec;

use crate::code::{Code, Inlined, Line};
use crate::outcome::Failure;
use crate::raw;
use crate::text::Str;
use crate::unwind::{RowBuffer, SavedBuffer};

/// The value of [`Inlined::parent`] for no parent.
const NO_PARENT: u32 = u32::MAX;

// The part that is on the stack: 3 KiB in all.
type Lines<'a> = SmallVec<[jitscribe::Line<'a>; 32]>;
type Calls<'a> = SmallVec<[jitscribe::Inlined<'a>; 8]>;
type Ranges = SmallVec<[std::ops::Range<u32>; 16]>;
type Files<'a> = SmallVec<[&'a [u8]; 4]>;

/// Calls `announce` with the code. What refers to files that the code does not have is left out of it; the second result says whether
/// there was any.
///
/// # Safety
/// What `given` points to fulfils the contract of the header: it is readable, and is not written to during the
/// call.
#[inline]
pub(crate) unsafe fn with_code<R>(
    given: &Code,
    announce: impl FnOnce(&jitscribe::Code<'_>) -> R,
) -> Result<(R, bool), Failure> {
    let tier;
    let mut are_missing = false;
    let (mut files, mut lines) = (Files::new(), Lines::new());
    // The fields are set in place: each method of `Code` that sets one would copy the others.
    // SAFETY: guaranteed by the caller, for all that is read here.
    unsafe {
        let (address, bytes) = place(given)?;
        let mut code = jitscribe::Code::at(address, given.size);
        code.bytes = bytes;
        code.name = given.name.bytes()?;
        code.kind = kind(given.kind);
        if given.tier.size != 0 {
            tier = given.tier.text()?;
            code.tier = &tier;
        }
        paths(&mut files, raw::slice(given.files, given.file_count)?)?;
        if given.line_count != 0 {
            let given = raw::slice(given.lines, given.line_count)?;
            code.lines = table(&mut lines, given, &files, &mut are_missing)?;
        }
        let has_more = given.ir_line_count != 0
            || given.inlined_count != 0
            || given.unwind.has_rows()
            || given.symfile_size != 0;
        if has_more {
            return with_more_tables(given, code, &files, are_missing, announce);
        }
        code.unwind = given.unwind.without_rows()?;
        Ok((announce(&code), are_missing))
    }
}

/// Adds the tables that most codes do not have. A function of its own, so that only codes that have any pay for their buffers.
///
/// # Safety
/// As for [`with_code`].
#[inline(never)]
unsafe fn with_more_tables<R>(
    given: &Code,
    code: jitscribe::Code<'_>,
    files: &[&[u8]],
    mut are_missing: bool,
    announce: impl FnOnce(&jitscribe::Code<'_>) -> R,
) -> Result<(R, bool), Failure> {
    let mut ir_lines = Lines::new();
    let (mut ranges, mut calls) = (Ranges::new(), Calls::new());
    let (mut saved, mut rows) = (SavedBuffer::default(), RowBuffer::default());
    let mut code = code;
    // SAFETY: guaranteed by the caller, for all that is read here.
    unsafe {
        if given.ir_line_count != 0 {
            let given = raw::slice(given.ir_lines, given.ir_line_count)?;
            code.ir_lines = table(&mut ir_lines, given, files, &mut are_missing)?;
        }
        if given.inlined_count != 0 {
            let given = raw::slice(given.inlined, given.inlined_count)?;
            collect(&mut ranges, given)?;
            code.inlined = inlined(&mut calls, given, files, &ranges, &mut are_missing)?;
        }
        code.unwind = given.unwind.decode(&mut saved, &mut rows)?;
        if given.symfile_size != 0 {
            code.symfile = Some(raw::slice(given.symfile.cast::<u8>(), given.symfile_size)?);
        }
    }
    Ok((announce(&code), are_missing))
}

/// Where the code runs, and its bytes if they are announced.
///
/// # Safety
/// As for [`with_code`].
#[inline]
unsafe fn place<'a>(given: &Code) -> Result<(u64, Option<&'a [u8]>), Failure> {
    if given.bytes.is_null() {
        return if given.address == 0 { Err(Failure::Null) } else { Ok((given.address, None)) };
    }
    let size = usize::try_from(given.size).map_err(|_| Failure::Argument)?;
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { raw::slice(given.bytes.cast::<u8>(), size) }?;
    let address = if given.address == 0 { given.bytes.addr() as u64 } else { given.address };
    Ok((address, Some(bytes)))
}

#[inline]
fn kind(number: u32) -> jitscribe::Kind {
    u8::try_from(number).map_or(jitscribe::Kind::Other, jitscribe::Kind::from)
}

/// Collects the paths. Without any, the index 0 of a zeroed struct means none.
///
/// # Safety
/// As for [`with_code`].
#[inline]
unsafe fn paths(to: &mut Files<'_>, given: &[Str]) -> Result<(), Failure> {
    if given.is_empty() {
        to.push(b"");
    }
    to.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
    for path in given {
        // SAFETY: guaranteed by the caller.
        to.push(unsafe { path.bytes() }?);
    }
    Ok(())
}

#[inline]
fn table<'t, 'a>(
    to: &'t mut Lines<'a>,
    given: &[Line],
    files: &[&'a [u8]],
    are_missing: &mut bool,
) -> Result<&'t [jitscribe::Line<'a>], Failure> {
    to.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
    let convert = |line: &Line, file| {
        jitscribe::Line::new_bytes(line.offset, file, line.line).column(line.column)
    };
    match *files {
        // Most codes have lines of one file, which need not be looked up for each.
        [only] if given.iter().fold(0, |bits, line| bits | line.file) == 0 => {
            to.extend(given.iter().map(|line| convert(line, only)));
        }
        _ => {
            for line in given {
                match files.get(line.file as usize) {
                    Some(file) => to.push(convert(line, file)),
                    None => *are_missing = true,
                }
            }
        }
    }
    Ok(to)
}

/// Collects the ranges of all calls, in the order of the calls.
///
/// # Safety
/// As for [`with_code`].
unsafe fn collect(ranges: &mut Ranges, given: &[Inlined]) -> Result<(), Failure> {
    for call in given {
        // SAFETY: guaranteed by the caller.
        let of_call = unsafe { raw::slice(call.ranges, call.range_count) }?;
        ranges.try_reserve(of_call.len()).map_err(|_| Failure::Memory)?;
        ranges.extend(of_call.iter().map(|range| range.start..range.end));
    }
    Ok(())
}

/// Builds the calls, which refer to their ranges.
///
/// # Safety
/// As for [`with_code`].
unsafe fn inlined<'t, 'a>(
    to: &'t mut Calls<'a>,
    given: &[Inlined],
    files: &[&'a [u8]],
    mut ranges: &'a [std::ops::Range<u32>],
    are_missing: &mut bool,
) -> Result<&'t [jitscribe::Inlined<'a>], Failure> {
    to.try_reserve(given.len()).map_err(|_| Failure::Memory)?;
    for call in given {
        let (own, rest) = ranges.split_at_checked(call.range_count).ok_or(Failure::Argument)?;
        ranges = rest;
        let file = files.get(call.file as usize);
        *are_missing |= file.is_none();
        // SAFETY: guaranteed by the caller.
        let name = unsafe { call.name.bytes() }?;
        let inlined = jitscribe::Inlined::new_bytes(name, own)
            .called_from_bytes(file.copied().unwrap_or_default(), call.line)
            .column(call.column)
            .within((call.parent != NO_PARENT).then_some(call.parent));
        to.push(inlined);
    }
    Ok(to)
}
