//! Places as runtimes write them into names.

/// A function and its place.
pub struct Placed<'a> {
    pub function: &'a [u8],
    pub file: &'a [u8],
    pub line: u32,
    pub column: u32,
}

/// A number of decimal digits, without a sign.
pub fn number(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text).ok().filter(|_| text.iter().all(u8::is_ascii_digit))?;
    digits.parse().ok()
}

/// Whether a text is a number of any length.
pub fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// The parts before and behind the last `byte`.
pub fn split_last(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|&other| other == byte)?;
    split_at(text, at)
}

/// The parts before and behind the first `byte`.
pub fn split_first(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&other| other == byte)?;
    split_at(text, at)
}

fn split_at(text: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    Some((text.get(..at)?, text.get(at.checked_add(1)?..)?))
}

/// The file and the line of `FILE:LINE`.
pub fn file_and_line(text: &[u8]) -> Option<(&[u8], u32)> {
    let (file, line) = split_last(text, b':')?;
    Some((file, number(line)?))
}

/// The parts of `NAME FILE:LINE:COLUMN` or `NAME FILE:LINE`. The name may be empty, or have spaces.
pub fn behind_name(text: &[u8]) -> Option<Placed<'_>> {
    let (rest, last) = file_and_line(text)?;
    let (rest, line, column) = match file_and_line(rest) {
        Some((rest, line)) => (rest, line, last),
        None => (rest, last, 0),
    };
    // Names of accessors have a space, and so may paths: the path begins at the first slash or scheme.
    let begins_path = |at: &usize| {
        let behind = at.checked_add(1).and_then(|at| rest.get(at..)).unwrap_or_default();
        let begins = [&b"/"[..], b"file:", b"node:"];
        begins.iter().any(|begin| behind.starts_with(begin)) || begins_with_scheme(behind)
    };
    let spaces = || (0..rest.len()).filter(|&at| rest.get(at) == Some(&b' '));
    // Text that was passed to eval has no file.
    let ends = || spaces().next_back().filter(|&at| at.checked_add(1) == Some(rest.len()));
    let space = spaces().find(begins_path).or_else(ends).or_else(|| spaces().next())?;
    let (function, file) = split_at(rest, space)?;
    Some(Placed { function, file, line, column })
}

/// Whether a text begins like `webpack-internal://`.
fn begins_with_scheme(text: &[u8]) -> bool {
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let scheme = text.iter().take_while(is_letter).count();
    let is_named = text.first().is_some_and(u8::is_ascii_alphabetic);
    is_named && text.get(scheme..).is_some_and(|behind| behind.starts_with(b"://"))
}

/// The parts of `NAME (FILE:LINE:COLUMN)`.
pub fn in_parentheses(text: &[u8]) -> Option<Placed<'_>> {
    let open = text.windows(2).position(|two| two == b" (")?;
    let (function, rest) = split_at(text, open)?;
    let place = rest.strip_prefix(b"(")?.strip_suffix(b")")?;
    let mut parts = place.rsplitn(3, |&byte| byte == b':');
    let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Placed { function, file, line: number(line)?, column: number(column)? })
}

/// The parts before and within the parentheses at the end.
pub fn last_parentheses(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_suffix(b")")?;
    let mut open = 1_usize;
    let at = inner.iter().rposition(|byte| {
        match byte {
            b')' => open = open.saturating_add(1),
            b'(' => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0
    })?;
    split_at(inner, at)
}
