//! The reader reads back what the writer writes, and the checker finds nothing in it.

use perf_map::{check::check, entries, push_line, safe_name};
use proptest::collection::vec;
use proptest::prelude::*;

fn line(address: u64, size: u64, name: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_line(&mut out, address, size, name);
    out
}

#[test]
fn lines_are_spelled_as_every_reader_takes_them() {
    assert_eq!(line(0x7F00_ABCD_0000, 0x1A0, b"fib"), b"7f00abcd0000 1a0 fib\n");
    assert_eq!(line(0x1000, 1, b"two words"), b"1000 1 two words\n");
    assert_eq!(line(0x1000, 1, b"a\nb\x1b[0m\0"), b"1000 1 a?b?[0m?\n");
    assert_eq!(line(0x1000, 1, "λ\u{85}".as_bytes()), "1000 1 λ?\n".as_bytes());
    assert_eq!(line(0x1000, 1, b"\xffab"), "1000 1 \u{fffd}ab\n".as_bytes());
    assert_eq!(line(0x1000, 1, b"f"), b"1000 1 f  \n");
    assert_eq!(line(0x1000, 1, b""), b"1000 1 [unnamed]\n");
    assert_eq!(line(0x1000, 1, b" \t"), b"1000 1 [unnamed]\n");
}

/// Arbitrary bytes, with those that matter in a line more often than others.
fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![any::<u8>(), prop::sample::select(&b" \t\r\n\0\xff\xc3\xa9ab"[..])], 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_written_is_read_back(
        codes in vec((any::<u64>(), any::<u64>(), name()), 0..8),
    ) {
        let codes: Vec<_> = codes
            .into_iter()
            .map(|(address, size, name)| (address, size.min(u64::MAX - address), name))
            .collect();
        let mut map = Vec::new();
        for (address, size, name) in &codes {
            push_line(&mut map, *address, *size, name);
        }
        let read: Result<Vec<_>, _> = entries(&map)
            .map(|entry| entry.map(|e| (e.address, e.size, String::from_utf8(e.name.to_vec()))))
            .collect();
        let expected: Vec<_> = codes
            .iter()
            .map(|(address, size, name)| (*address, *size, Ok(safe_name(name).into_owned())))
            .collect();
        prop_assert_eq!(read, Ok(expected));
    }

    #[test]
    fn a_name_once_made_safe_stays_as_it_is(name in name()) {
        let once = safe_name(&name).into_owned();
        prop_assert_eq!(safe_name(once.as_bytes()).into_owned(), once);
    }

    #[test]
    fn the_checker_finds_nothing_in_what_the_writer_wrote(name in name()) {
        let report = check(&line(0x1000, 0x20, &name));
        let rules: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
        prop_assert_eq!(rules, Vec::<&str>::new());
    }

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in vec(prop_oneof![
        any::<u8>(),
        prop::sample::select(&b"0123456789abcdefxX \t\r\n"[..]),
    ], 0..200)) {
        let lines = bytes.split(|&b| b == b'\n');
        let filled = lines
            .filter(|line| line.iter().any(|b| !b" \t".contains(b)) && line != b"\r")
            .filter(|line| !line.strip_suffix(b"\r").is_some_and(|l| l.iter().all(|b| b" \t".contains(b))))
            .count();
        prop_assert_eq!(entries(&bytes).count(), filled);
        let report = check(&bytes);
        prop_assert_eq!(report.entries as usize, entries(&bytes).flatten().count());
    }
}
