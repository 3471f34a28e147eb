//! Parsing one line, with everything that the checker needs to know about its spelling.

use crate::Cause;

/// A line split into its fields, without validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub address: Number,
    pub size: Number,
    /// The bytes between address and size.
    pub first_gap: &'a [u8],
    /// The bytes between size and name.
    pub second_gap: &'a [u8],
    /// Whether blanks precede the address.
    pub indented: bool,
    /// The name with the blanks that follow it.
    pub padded_name: &'a [u8],
    /// Whether a carriage return ended the line.
    pub carriage_return: bool,
}

/// A number as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    pub value: u64,
    /// Whether it had the prefix `0x`.
    pub prefixed: bool,
}

enum NumberError {
    Missing,
    TooLarge,
}

/// Parses one line, given without its newline. `None` is a blank line.
///
/// A number ends at a blank or at the end of the line: `12g 4 f` is not an entry. A lenient `strtoull` would read the
/// address 0x12 and misread the rest.
pub(crate) fn parse(line: &[u8]) -> Option<Result<Line<'_>, Cause>> {
    let (line, carriage_return) = match line.split_last() {
        Some((b'\r', rest)) => (rest, true),
        _ => (line, false),
    };
    let (indent, rest) = split_blanks(line);
    if rest.is_empty() {
        return None;
    }
    Some(parse_fields(rest).map(|fields| Line {
        indented: !indent.is_empty(),
        carriage_return,
        ..fields
    }))
}

fn parse_fields(line: &[u8]) -> Result<Line<'_>, Cause> {
    let (address, rest) = number(line).map_err(|error| match error {
        NumberError::Missing => Cause::NoAddress,
        NumberError::TooLarge => Cause::AddressTooLarge,
    })?;
    let (first_gap, rest) = split_blanks(rest);
    let (size, rest) = number(rest).map_err(|error| match error {
        NumberError::Missing => Cause::NoSize,
        NumberError::TooLarge => Cause::SizeTooLarge,
    })?;
    let (second_gap, name) = split_blanks(rest);
    if address.value.checked_add(size.value).is_none() {
        return Err(Cause::EndOverflows { address: address.value, size: size.value });
    }
    Ok(Line {
        address,
        size,
        first_gap,
        second_gap,
        indented: false,
        padded_name: name,
        carriage_return: false,
    })
}

/// Reads a hexadecimal number that ends at a blank or at the end of the line.
fn number(text: &[u8]) -> Result<(Number, &[u8]), NumberError> {
    let length = text.iter().position(|&byte| is_blank(byte)).unwrap_or(text.len());
    let (field, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
    let unprefixed = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X"));
    let digits = unprefixed.unwrap_or(field);
    if digits.is_empty() {
        return Err(NumberError::Missing);
    }
    let mut value = 0_u64;
    let mut fits = true;
    for &byte in digits {
        let digit = char::from(byte).to_digit(16).ok_or(NumberError::Missing)?;
        fits &= value.leading_zeros() >= 4;
        value = value.wrapping_shl(4) | u64::from(digit);
    }
    if !fits {
        return Err(NumberError::TooLarge);
    }
    Ok((Number { value, prefixed: unprefixed.is_some() }, rest))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Splits off leading blanks.
fn split_blanks(text: &[u8]) -> (&[u8], &[u8]) {
    let length = text.iter().position(|&byte| !is_blank(byte)).unwrap_or(text.len());
    text.split_at_checked(length).unwrap_or((text, &[]))
}

/// Removes trailing blanks.
pub(crate) fn trim_end(mut text: &[u8]) -> &[u8] {
    while let Some((&last, rest)) = text.split_last() {
        if !is_blank(last) {
            break;
        }
        text = rest;
    }
    text
}
