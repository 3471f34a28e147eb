//! Each rule is violated once, and reported by name and place; correct maps have no findings.

use crate::seconds;
use perf_map::check::{Finding, MAX_PLACES, Place, RULES, Severity, check};

/// The findings as `rule@line+offset: what`.
fn found(map: &[u8]) -> Vec<String> {
    let told = |f: &Finding| format!("{}@{}+{}: {}", f.rule, f.places[0].line, f.offset, f.what);
    check(map).findings.iter().map(told).collect()
}

#[test]
fn a_clean_map_has_no_finding() {
    let report = check(b"7f0000001000 40 fib(int, int)\n7f0000001040 4f $global::x\n");
    assert_eq!(report.findings, []);
    assert_eq!(report.entries, 2);
}

#[test]
fn each_rule_is_caught_by_name() {
    let cases: &[(&[u8], &str)] = &[
        (
            b"foo bar\n1000 20 fib\n",
            "unreadable-line@1+0: the line does not begin with a hexadecimal address",
        ),
        (b"1000 20 fib\n2000\n", "unreadable-line@2+12: no hexadecimal size follows the address"),
        (
            b"1000 20 fib\n10000000000000000 20 f\n",
            "address-overflow@2+12: the address does not fit in 64 bits",
        ),
        (
            b"1000 20 fib\nffffffffffffffff 20 f\n",
            "address-overflow@2+12: address 0xffffffffffffffff plus size 0x20 overflows 64 bits",
        ),
        (b"0x1000 0x20 fib\n", "hex-prefix@1+0: address and size have a 0x prefix"),
        (b"0X1000 20 fib\n", "hex-prefix@1+0: the address has a 0x prefix"),
        (b"1000 0x20 fib\n", "hex-prefix@1+0: the size has a 0x prefix"),
        (b"1000\t20 fib\n", "separator@1+0: the fields are separated by a tab"),
        (b"1000 20\tfib\n", "separator@1+0: the fields are separated by a tab"),
        (b"1000 20  fib\n", "separator@1+0: the fields are separated by more than one blank"),
        (b" 1000 20 fib\n", "separator@1+0: the line begins with blanks"),
        (b"1000 20 fib\r\n", "carriage-return@1+0: a carriage return ends the line"),
        (b"1000 20\n", "empty-name@1+0: the code at 0x1000 has no name"),
        (b"1000 20 \n", "empty-name@1+0: the code at 0x1000 has no name"),
        (b"1000 20 fn\n", "short-name@1+0: the name \"fn\" has 2 bytes"),
        (
            b"1000 20 a\x1b[31mred\n",
            "control-character@1+0: the name \"a\\x1b[31mred\" contains U+001B",
        ),
        (
            b"1000 20 fib\xff\n",
            "not-utf8@1+0: the name \"fib\\xff\" is not UTF-8 from its byte 3 on",
        ),
        (b"1000 0 fib\n", "zero-size@1+0: \"fib\" at 0x1000 has size 0"),
        (b"40 20 fib\n", "unmappable-address@1+0: \"fib\" is at 0x40"),
        (b"1000 20 fib\n1000 20 fib\n", "duplicate@2+12: \"fib\" is already in line 1"),
        (
            b"1000 20 fib\n1000 20 sum\n",
            "overlap@2+12: \"sum\" [0x1000, 0x1020) overlaps \"fib\" [0x1000, 0x1020) of line 1",
        ),
        (
            b"1000 20 fib\n101f 20 sum\n",
            "overlap@2+12: \"sum\" [0x101f, 0x103f) overlaps \"fib\" [0x1000, 0x1020) of line 1",
        ),
        (b"1000 20 fib", "no-final-newline@1+0: the last line has no newline"),
        (b"", "no-entries@1+0: the file has no entry"),
    ];
    for &(map, expected) in cases {
        assert_eq!(found(map), [expected], "{}", map.escape_ascii());
    }
    for rule in RULES {
        let caught = cases.iter().any(|(_, what)| what.starts_with(&format!("{}@", rule.name)));
        assert!(caught, "no case for {}", rule.name);
    }
}

#[test]
fn an_overlap_is_told_of_the_youngest_that_gives_way() {
    let map = b"1000 100 one\n1020 20 two\n1080 20 three\n1100 10 five\n";
    let first =
        "overlap@2+13: \"two\" [0x1020, 0x1040) overlaps \"one\" [0x1000, 0x1100) of line 1";
    assert_eq!(found(map), [first]);
    assert_eq!(check(map).findings[0].count, 2);

    let map = b"1000 10 one\n1080 10 two\n1040 10 three\n1000 100 four\n";
    let over =
        "overlap@4+38: \"four\" [0x1000, 0x1100) overlaps \"three\" [0x1040, 0x1050) of line 3";
    assert_eq!(found(map), [over]);
}

#[test]
fn each_rule_is_told_once_the_worst_first_with_its_first_places() {
    let mut map = b"1000 0 zero\n".to_vec();
    for n in 0..1000 {
        map.extend_from_slice(format!("0x{:x} 10 fib\n", 0x1000 + n * 0x10).as_bytes());
    }
    map.extend_from_slice(b"9000 10 x\n9000 10 x\n");
    let report = check(&map);
    let told: Vec<_> = report.findings.iter().map(|f| (f.severity, f.rule, f.count)).collect();
    assert_eq!(
        told,
        [
            (Severity::Error, "hex-prefix", 1000),
            (Severity::Error, "short-name", 2),
            (Severity::Warning, "zero-size", 1),
            (Severity::Note, "duplicate", 1),
        ]
    );
    let hex_prefix = &report.findings[0];
    assert_eq!(hex_prefix.places.len(), MAX_PLACES);
    assert_eq!(
        hex_prefix.places[..2],
        [Place { offset: 12, line: 2 }, Place { offset: 26, line: 3 }]
    );
    assert!(report.has_errors());
    assert_eq!(report.entries, 1003);
}

#[test]
fn many_lines_over_one_another_take_no_time() {
    // Each line overlaps many before it: claims that would be quadratic if every older
    // line were looked at again.
    let mut map = Vec::new();
    for n in 0..300_000_u64 {
        perf_map::push_line(&mut map, 0x1000 + (n % 1000) * 8, 0x4000, b"one over another");
    }
    let start = seconds();
    assert_eq!(check(&map).findings.len(), 1);
    assert!(seconds() - start < 20);
}
