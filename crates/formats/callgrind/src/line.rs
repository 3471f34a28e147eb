//! Parsing of one line: its kind, and its content.

use crate::error::Cause;

/// The kinds of names. Each kind has its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Objects.
    Object,
    /// Source files.
    File,
    /// Functions.
    Function,
}

/// The meaning of the name in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `ob`: the object of the functions that follow.
    Ob,
    /// `fl`: the file of the function that follows.
    Fl,
    /// `fi`: the file of the lines that follow, inlined from there.
    Fi,
    /// `fe`: the file of the lines that follow, after the end of inlined code.
    Fe,
    /// `fn`: the function of the lines that follow.
    Fn,
    /// `cob`: the object of the next call's target.
    Cob,
    /// `cfi`: its file.
    Cfi,
    /// `cfl`: the same, as older versions write it.
    Cfl,
    /// `cfn`: its function.
    Cfn,
    /// `jfi`: the file of the next jump's target.
    Jfi,
    /// `jfn`: its function.
    Jfn,
}

impl Field {
    /// The key before the `=`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Ob => "ob",
            Self::Fl => "fl",
            Self::Fi => "fi",
            Self::Fe => "fe",
            Self::Fn => "fn",
            Self::Cob => "cob",
            Self::Cfi => "cfi",
            Self::Cfl => "cfl",
            Self::Cfn => "cfn",
            Self::Jfi => "jfi",
            Self::Jfn => "jfn",
        }
    }

    /// The kind of the name.
    pub fn kind(self) -> Kind {
        match self {
            Self::Ob | Self::Cob => Kind::Object,
            Self::Fl | Self::Fi | Self::Fe | Self::Cfi | Self::Cfl | Self::Jfi => Kind::File,
            Self::Fn | Self::Cfn | Self::Jfn => Kind::Function,
        }
    }

    fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"ob" => Self::Ob,
            b"fl" => Self::Fl,
            b"fi" => Self::Fi,
            b"fe" => Self::Fe,
            b"fn" => Self::Fn,
            b"cob" => Self::Cob,
            b"cfi" => Self::Cfi,
            b"cfl" => Self::Cfl,
            b"cfn" => Self::Cfn,
            b"jfi" => Self::Jfi,
            b"jfn" => Self::Jfn,
            _ => return None,
        })
    }
}

/// A name as it is written: `name`; `(7) name`, which defines a number for it; or `(7)`, which refers to that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRef<'a> {
    /// The number.
    pub id: Option<u64>,
    /// The name; empty if there is only a number.
    pub text: &'a [u8],
}

impl<'a> NameRef<'a> {
    /// Parses what is behind the `=`.
    pub fn parse(written: &'a [u8]) -> Self {
        let written = written.trim_ascii_start();
        if let Some(rest) = written.strip_prefix(b"(")
            && let Some((digits, rest)) = split_digits(rest)
            && let Some(text) = rest.strip_prefix(b")")
            && let Some(id) = decimal(digits)
        {
            return Self { id: Some(id), text: text.trim_ascii_start() };
        }
        Self { id: None, text: written }
    }
}

fn split_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at_checked(count).filter(|(digits, _)| !digits.is_empty())
}

/// A line, without its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// An empty line, or a comment.
    Blank,
    /// `key: value`.
    Header {
        /// Before the colon.
        key: &'a [u8],
        /// Behind it, without surrounding blanks.
        value: &'a [u8],
    },
    /// `field=name`.
    Name {
        /// What the name refers to.
        field: Field,
        /// The name.
        name: NameRef<'a>,
    },
    /// `calls=count target`. The next line has the position of the call, and its costs.
    Calls {
        /// Number of calls.
        count: u64,
        /// The target's positions.
        target: &'a [u8],
    },
    /// `jump=count target` or `jcnd=count/executed target`. The next line has the position of the jump.
    Jump {
        /// How often it was taken.
        taken: u64,
        /// How often it was executed, if the jump is conditional.
        executed: Option<u64>,
        /// The target's positions.
        target: &'a [u8],
    },
    /// Positions and costs.
    Cost(&'a [u8]),
}

/// Parses a line, given without its line end.
///
/// # Errors
/// If it is of no known kind, or a count is malformed.
pub fn parse(line: &[u8]) -> Result<Line<'_>, Cause> {
    match line.first() {
        None | Some(b'#') => return Ok(Line::Blank),
        Some(b'0'..=b'9' | b'+' | b'-' | b'*') => return Ok(Line::Cost(line)),
        Some(_) => {}
    }
    // Names may contain both characters; keys are short.
    let end = line.iter().take(16).position(|&byte| byte == b'=' || byte == b':');
    let Some((key, rest)) = end.and_then(|end| line.split_at_checked(end)) else {
        return if line.trim_ascii().is_empty() { Ok(Line::Blank) } else { Err(Cause::NoSuchLine) };
    };
    let (separator, rest) = rest.split_first().ok_or(Cause::NoSuchLine)?;
    if *separator == b':' {
        let is_key = !key.is_empty() && key.iter().all(u8::is_ascii_alphabetic);
        let header = Line::Header { key, value: rest.trim_ascii() };
        return if is_key { Ok(header) } else { Err(Cause::NoSuchLine) };
    }
    if let Some(field) = Field::of(key) {
        return Ok(Line::Name { field, name: NameRef::parse(rest) });
    }
    let mut rest = rest.trim_ascii_start();
    match key {
        b"calls" => Ok(Line::Calls { count: number(&mut rest)?, target: rest.trim_ascii() }),
        b"jump" => {
            let taken = number(&mut rest)?;
            Ok(Line::Jump { taken, executed: None, target: rest.trim_ascii() })
        }
        b"jcnd" => {
            let taken = number(&mut rest)?;
            // According to the specification, the second number may be omitted.
            let executed = match rest.strip_prefix(b"/") {
                Some(behind) => {
                    rest = behind;
                    if rest.first().is_some_and(u8::is_ascii_digit) {
                        number(&mut rest)?
                    } else {
                        taken
                    }
                }
                None => taken,
            };
            Ok(Line::Jump { taken, executed: Some(executed), target: rest.trim_ascii() })
        }
        _ => Err(Cause::NoSuchLine),
    }
}

/// Parses a number, decimal or hexadecimal with `0x`, off the front.
pub(crate) fn number(text: &mut &[u8]) -> Result<u64, Cause> {
    if let Some(rest) = text.strip_prefix(b"0x") {
        let count = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, behind) = rest.split_at_checked(count).ok_or(Cause::NoNumber)?;
        *text = behind;
        return hexadecimal(digits).ok_or(Cause::NoNumber);
    }
    let mut value = 0_u64;
    let mut rest = *text;
    while let Some((&digit @ b'0'..=b'9', behind)) = rest.split_first() {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit & 0xf)))
            .ok_or(Cause::NoNumber)?;
        rest = behind;
    }
    if rest.len() == text.len() {
        return Err(Cause::NoNumber);
    }
    *text = rest;
    Ok(value)
}

/// Parses a cost off the front: a decimal number up to the next blank.
pub(crate) fn cost(text: &mut &[u8]) -> Result<u64, Cause> {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (digits, behind) = text.split_at_checked(end).ok_or(Cause::NoNumber)?;
    *text = behind;
    decimal(digits).ok_or(Cause::NoNumber)
}

/// Parses all of `digits` as a decimal number.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    let mut rest = digits;
    let value = number(&mut rest).ok()?;
    (rest.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some(value)
}

/// Parses all of `digits`, without `0x`, as a hexadecimal number.
pub(crate) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_line() {
        assert_eq!(parse(b""), Ok(Line::Blank));
        assert_eq!(parse(b"# callgrind format"), Ok(Line::Blank));
        assert_eq!(parse(b"cmd:  a b=c"), Ok(Line::Header { key: b"cmd", value: b"a b=c" }));
        assert_eq!(
            parse(b"desc: I1 cache: "),
            Ok(Line::Header { key: b"desc", value: b"I1 cache:" })
        );
        let name = |field, id, text| Ok(Line::Name { field, name: NameRef { id, text } });
        assert_eq!(parse(b"fn=(12) a(int)"), name(Field::Fn, Some(12), b"a(int)"));
        assert_eq!(parse(b"cfn=(12)"), name(Field::Cfn, Some(12), b""));
        assert_eq!(parse(b"cfn=(below main)"), name(Field::Cfn, None, b"(below main)"));
        assert_eq!(parse(b"ob=/a=b:c"), name(Field::Ob, None, b"/a=b:c"));
        assert_eq!(parse(b"calls=3 0x1f +2 "), Ok(Line::Calls { count: 3, target: b"0x1f +2" }));
        assert_eq!(parse(b"jump=3 +4"), Ok(Line::Jump { taken: 3, executed: None, target: b"+4" }));
        assert_eq!(
            parse(b"jcnd=3/9 *"),
            Ok(Line::Jump { taken: 3, executed: Some(9), target: b"*" })
        );
        assert_eq!(parse(b"* +3 7"), Ok(Line::Cost(b"* +3 7")));
        for wrong in
            [&b"hello"[..], b"xx=3", b"calls=", b"calls=99999999999999999999 1", b"=", b":"]
        {
            assert!(parse(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
