//! Where in the interpreted program a trace, or a part of it, comes from.

/// A line of the interpreted program, as the interpreter describes it (`pypy/module/pypyjit/interp_jit.py`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function, without zeros. Other interpreters than that for Python, such as that for regular expressions, may say anything here.
    pub function: Box<[u8]>,
    /// The path of its file; empty if unknown.
    pub file: Box<[u8]>,
    /// From 1; 0 if unknown.
    pub line: u32,
}

/// Removes what follows the line: the bytecode instruction.
pub(crate) fn without_instruction(text: &[u8]) -> &[u8] {
    let end = text.windows(2).rposition(|two| two == b"~#");
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

impl Place {
    /// Parses `FUNCTION;FILE:FIRST-LINE`, or what PyPy before 7.3 writes, `<code object FUNCTION. file 'FILE'. line FIRST> …`.
    /// Anything else is a function.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let text = without_instruction(text);
        Self::modern(text)
            .or_else(|| Self::old(text))
            .unwrap_or_else(|| Self { function: text.into(), ..Self::default() })
    }

    fn modern(text: &[u8]) -> Option<Self> {
        let (function, rest) = split_once(text, b";")?;
        let colon = rest.iter().rposition(|byte| *byte == b':')?;
        let (file, lines) = rest.split_at_checked(colon)?;
        let (_, line) = split_once(lines.get(1..)?, b"-")?;
        Some(Self {
            function: without_zeros(function),
            file: without_zeros(file),
            line: number(line)?,
        })
    }

    fn old(text: &[u8]) -> Option<Self> {
        let (function, rest) = split_once(text.strip_prefix(b"<code object ")?, b". file '")?;
        let (file, rest) = split_once(rest, b"'. line ")?;
        let (line, _) = split_once(rest, b">")?;
        Some(Self {
            function: without_zeros(function),
            file: without_zeros(file),
            line: number(line)?,
        })
    }
}

/// The parts before and behind the first `separator`.
pub(crate) fn split_once<'t>(text: &'t [u8], separator: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((text.get(..at)?, text.get(at.saturating_add(separator.len())..)?))
}

/// No format for names has zeros in them.
fn without_zeros(text: &[u8]) -> Box<[u8]> {
    text.iter().map(|&byte| if byte == 0 { b'?' } else { byte }).collect()
}

fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
