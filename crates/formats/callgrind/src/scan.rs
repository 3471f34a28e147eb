//! A fast path for sequences of cost lines, which make up most of a profile.
//!
//! It accepts only lines in the form that callgrind writes. Other lines are left to the general parser.

/// Parses a line of `N` positions, which update `last`, and any costs.
#[inline(always)]
pub(crate) fn skip_costs<'a, const N: usize>(
    text: &'a [u8],
    last: &mut [u64; N],
) -> Option<&'a [u8]> {
    let mut positions = *last;
    let mut rest = read_positions(text, &mut positions)?;
    // The costs are copied unread.
    loop {
        let (&byte, behind) = rest.split_first()?;
        rest = behind;
        if byte == b'\n' {
            break;
        }
    }
    *last = positions;
    Some(rest)
}

/// Parses a line of `N` positions, which update `last`, and `events` costs, which are appended to `values`. Costs
/// omitted at the end are 0.
#[inline(always)]
pub(crate) fn read_costs<'a, const N: usize>(
    text: &'a [u8],
    last: &mut [u64; N],
    events: usize,
    values: &mut Vec<u64>,
) -> Option<&'a [u8]> {
    let mut positions = *last;
    let mut rest = read_positions(text, &mut positions)?;
    let begin = values.len();
    for _ in 0..events {
        let Some((value, behind)) = value(rest) else {
            if rest.first() == Some(&b'\n') {
                break;
            }
            values.truncate(begin);
            return None;
        };
        values.push(value);
        rest = behind;
    }
    let Some(behind) = rest.strip_prefix(b"\n") else {
        values.truncate(begin);
        return None;
    };
    values.resize(begin.wrapping_add(events), 0);
    *last = positions;
    Some(behind)
}

/// Parses a cost, and the blank behind it if there is one.
#[inline(always)]
fn value(text: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = decimal(text)?;
    match rest.split_first()? {
        (b' ', behind) => Some((number, behind)),
        (b'\n', _) => Some((number, rest)),
        _ => None,
    }
}

/// How often a jump was taken, how often it was executed if it is conditional, and its target.
pub(crate) struct JumpLine<const N: usize> {
    pub taken: u64,
    pub executed: Option<u64>,
    pub target: [u64; N],
}

/// Parses a jump and the line behind it with its position, which updates `last`. Parses both or neither.
#[inline(always)]
pub(crate) fn read_jump<'a, const N: usize>(
    text: &'a [u8],
    last: &mut [u64; N],
) -> Option<(JumpLine<N>, &'a [u8])> {
    let (taken, executed, rest) = match text {
        [b'j', b'u', b'm', b'p', b'=', rest @ ..] => {
            let (taken, rest) = number(rest)?;
            (taken, None, rest)
        }
        [b'j', b'c', b'n', b'd', b'=', rest @ ..] => {
            let (taken, rest) = digits::<b'/'>(rest)?;
            let (executed, rest) = number(rest)?;
            (taken, Some(executed), rest)
        }
        _ => return None,
    };
    let mut target = *last;
    let rest = read_positions(rest, &mut target)?.strip_prefix(b"\n")?;
    let rest = skip_costs(rest, last)?;
    Some((JumpLine { taken, executed, target }, rest))
}

/// Parses `calls=COUNT TARGET` with its line end, and returns the count. The positions of the target update `target`.
#[inline(always)]
pub(crate) fn read_call<'a, const N: usize>(
    text: &'a [u8],
    target: &mut [u64; N],
) -> Option<(u64, &'a [u8])> {
    let (count, rest) = number(text.strip_prefix(b"calls=")?)?;
    Some((count, read_positions(rest, target)?.strip_prefix(b"\n")?))
}

/// Parses the same line as [`read_call`].
#[inline(always)]
pub(crate) fn skip_call<'a, const N: usize>(text: &'a [u8], last: &[u64; N]) -> Option<&'a [u8]> {
    read_call(text, &mut { *last }).map(|(_, rest)| rest)
}

/// Parses a jump and the line behind it with its position: both or neither.
#[inline(always)]
pub(crate) fn skip_jump<'a, const N: usize>(
    text: &'a [u8],
    last: &mut [u64; N],
) -> Option<&'a [u8]> {
    if !(text.starts_with(b"jump=") || text.starts_with(b"jcnd=")) {
        return None;
    }
    let end = memchr::memchr(b'\n', text)?;
    skip_costs(text.get(end.wrapping_add(1)..)?, last)
}

/// Parses `(ID)` with its line end.
#[inline(always)]
pub(crate) fn reference(text: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = digits::<b')'>(text.strip_prefix(b"(")?)?;
    Some((id, rest.strip_prefix(b"\n")?))
}

/// Parses positions, each followed by a blank.
#[inline(always)]
fn read_positions<'a, const N: usize>(
    text: &'a [u8],
    positions: &mut [u64; N],
) -> Option<&'a [u8]> {
    let mut rest = text;
    for value in positions {
        rest = position(rest, value)?;
    }
    Some(rest)
}

#[inline(always)]
fn position<'a>(text: &'a [u8], value: &mut u64) -> Option<&'a [u8]> {
    match text {
        [b'*', b' ', rest @ ..] => Some(rest),
        // The short form that most positions have.
        [b'+', digit @ b'0'..=b'9', b' ', rest @ ..] => {
            *value = value.wrapping_add(u64::from(digit & 0xf));
            Some(rest)
        }
        [b'-', digit @ b'0'..=b'9', b' ', rest @ ..] => {
            *value = value.wrapping_sub(u64::from(digit & 0xf));
            Some(rest)
        }
        [b'+', rest @ ..] => {
            let (distance, rest) = number(rest)?;
            *value = value.wrapping_add(distance);
            Some(rest)
        }
        [b'-', rest @ ..] => {
            let (distance, rest) = number(rest)?;
            *value = value.wrapping_sub(distance);
            Some(rest)
        }
        [b'0', b'x', rest @ ..] => {
            let (address, rest) = hexadecimal(rest)?;
            *value = address;
            Some(rest)
        }
        _ => {
            let (whole, rest) = number(text)?;
            *value = whole;
            Some(rest)
        }
    }
}

/// Parses a decimal number and the blank behind it.
#[inline(always)]
pub(crate) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    digits::<b' '>(text)
}

/// Parses a decimal number and the byte `END` behind it.
#[inline(always)]
fn digits<const END: u8>(text: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = decimal(text)?;
    let (&end, behind) = rest.split_first()?;
    (end == END).then_some((number, behind))
}

/// Parses a decimal number that is followed by at least one byte.
#[inline(always)]
fn decimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut rest, mut number) = (text, 0_u64);
    loop {
        let (&byte, behind) = rest.split_first()?;
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            // A number that may be too large is left to the general parser.
            let count = text.len().wrapping_sub(rest.len());
            return (count.wrapping_sub(1) < 18).then_some((number, rest));
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        rest = behind;
    }
}

/// Parses a hexadecimal number, without its `0x`, and the blank behind it.
#[inline(always)]
fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut rest, mut number) = (text, 0_u64);
    loop {
        let (&byte, behind) = rest.split_first()?;
        let digit = match byte {
            b'0'..=b'9' => byte & 0xf,
            b'a'..=b'f' | b'A'..=b'F' => (byte & 0xf).wrapping_add(9),
            _ => {
                let count = text.len().wrapping_sub(rest.len());
                let is_one = byte == b' ' && count.wrapping_sub(1) < 16;
                return is_one.then_some((number, behind));
            }
        };
        number = number << 4 | u64::from(digit);
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Line, NameRef, cost, parse};
    use crate::position::{Columns, Positions};
    use proptest::prelude::*;

    /// Parses as many lines as possible. Returns the rest, the last positions, and the number of lines.
    fn scan_all<const N: usize>(text: &[u8]) -> (&[u8], [u64; N], usize) {
        let (mut rest, mut last, mut lines) = (text, [7; N], 0);
        while let Some((behind, more)) = skip_costs(rest, &mut last)
            .map(|behind| (behind, 1))
            .or_else(|| Some((skip_jump(rest, &mut last)?, 2)))
            .or_else(|| Some((skip_call(rest, &last)?, 1)))
        {
            (rest, lines) = (behind, lines + more);
        }
        (rest, last, lines)
    }

    fn compare<const N: usize>(text: &str, columns: &[u8]) {
        let columns = Columns::parse(columns).expect("columns");
        let (rest, scanned, lines) = scan_all::<N>(text.as_bytes());
        let done = &text.as_bytes()[..text.len() - rest.len()];
        assert!(done.is_empty() || done.ends_with(b"\n"));
        let mut parsed = Positions([7; 4]);
        let mut count = 0;
        for line in done.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            count += 1;
            match line.first() {
                // These lines are copied unread.
                Some(b'j') => {}
                Some(b'c') => {
                    let Ok(Line::Calls { target, .. }) = parse(line) else { panic!("calls") };
                    columns.take(&mut &*target, &parsed).expect("positions");
                }
                _ => parsed = columns.take(&mut &*line, &parsed).expect("positions"),
            }
        }
        assert_eq!((&parsed.0[..N], count), (&scanned[..], lines), "{text}");
    }

    proptest! {
        /// The fast path accepts only what the general parser accepts.
        #[test]
        fn scanned_costs_and_jumps_equal_parsed_ones(
            text in prop::collection::vec(
                "[-+*]?[0-9]{1,3} |jump=3 |calls=[0-9]{1,20} |0x[0-9a-f]{1,17} |[0-9]{17,21} |\n|[ x]", 0..30,
            ),
        ) {
            let text = text.concat();
            compare::<1>(&text, b"line");
            compare::<2>(&text, b"instr line");
            compare::<3>(&text, b"instr bb line");
        }

        /// Costs have the same values as in the general parser, or are not accepted.
        #[test]
        fn costs_equal_parsed_ones(
            text in prop::collection::vec("[-+*]?[0-9]{1,3} |[0-9]{17,21} |[0-9]{1,4}|\n|[ x]", 0..8),
            events in 0..4_usize,
        ) {
            let text = text.concat() + "\n";
            let (mut last, mut values) = ([7; 2], vec![1]);
            let Some(rest) = read_costs(text.as_bytes(), &mut last, events, &mut values) else {
                prop_assert_eq!((last, values), ([7; 2], vec![1]));
                return Ok(());
            };
            let line = &text[..text.len() - rest.len() - 1];
            let columns = Columns::parse(b"instr line").expect("columns");
            let mut costs = line.as_bytes();
            let positions = columns.take(&mut costs, &Positions([7; 4])).expect("positions");
            let mut expected = vec![1];
            for _ in 0..events {
                costs = costs.trim_ascii_start();
                let left_out = costs.is_empty();
                expected.push(if left_out { 0 } else { cost(&mut costs).expect("a cost") });
            }
            prop_assert_eq!((last.as_slice(), values), (&positions.0[..2], expected), "{}", line);
        }

        /// Jumps have the same content as in the general parser.
        #[test]
        fn jumps_equal_parsed_ones(
            text in "(jump|jcnd)=[0-9]{1,20}(/[0-9]{0,3})? [-+*]?[0-9]{1,3} [*] ?\n[+][0-9] [*] ?0?\n",
        ) {
            let mut last = [7; 2];
            let Some((jump, rest)) = super::read_jump(text.as_bytes(), &mut last) else {
                prop_assert_eq!(last, [7; 2]);
                return Ok(());
            };
            prop_assert!(rest.is_empty());
            let columns = Columns::parse(b"instr line").expect("columns");
            let (first, second) = text.trim_end().split_once('\n').expect("two lines");
            let Ok(Line::Jump { taken, executed, mut target }) = parse(first.as_bytes()) else {
                panic!("{first}")
            };
            prop_assert_eq!((jump.taken, jump.executed), (taken, executed));
            let target = columns.take(&mut target, &Positions([7; 4])).expect("positions");
            prop_assert_eq!(jump.target.as_slice(), &target.0[..2]);
            let at = columns.take(&mut second.as_bytes(), &Positions([7; 4])).expect("positions");
            prop_assert_eq!(last.as_slice(), &at.0[..2]);
        }

        #[test]
        fn references(text in "\\(?[0-9]{0,21}[) ]{0,2}\n?a?") {
            let Some((id, rest)) = reference(text.as_bytes()) else { return Ok(()) };
            let line = &text[..text.len() - rest.len() - 1];
            prop_assert_eq!(NameRef::parse(line.as_bytes()), NameRef { id: Some(id), text: b"" });
        }
    }

    #[test]
    fn lines_as_callgrind_writes_them_are_accepted() {
        let mut values = Vec::new();
        let costs = b"+4 0 17 3\n";
        assert!(read_costs(costs, &mut [0; 2], 3, &mut values).is_some_and(<[u8]>::is_empty));
        assert_eq!(values, [17, 3, 0]);
        let text = "0x4a10c0 12 1\n+4 * 1 0 3\n* -3 1\njcnd=1/2 +46 +29 \n* * \ncalls=1 0x152a80 264 \n* * 11\n";
        let (rest, last, lines) = scan_all::<2>(text.as_bytes());
        assert_eq!((rest, last, lines), (&b""[..], [0x4a_10c4, 9], 7));
        assert_eq!(reference(b"(12)\nfn"), Some((12, &b"fn"[..])));
    }
}
