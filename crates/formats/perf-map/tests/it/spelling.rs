//! Every spelling that real writers use, read one by one.

use perf_map::{Cause, Entry, Error, entries};

/// Reads one line as the whole file.
fn one(line: &[u8]) -> Result<(u64, u64, &[u8]), Cause> {
    let read: Vec<_> = entries(line).collect();
    assert_eq!(read.len(), 1, "{}", line.escape_ascii());
    read[0].map(|entry| (entry.address, entry.size, entry.name)).map_err(|error| error.cause)
}

#[test]
fn reads_what_real_writers_write() {
    let long = b"n".repeat(409);
    let long_line = [b"1000 20 ", &long[..], b"\n"].concat();
    let cases: &[(&[u8], u64, u64, &[u8])] = &[
        (
            b"7f66f02b8000 68 $global::apply_fun_shared\n",
            0x7f66_f02b_8000,
            0x68,
            b"$global::apply_fun_shared",
        ),
        (
            b"0x00007fe820ec71c0 0x0000000000000270 void A.b(int, long)\n",
            0x7fe8_20ec_71c0,
            0x270,
            b"void A.b(int, long)",
        ),
        (b"0X1000 20 one\n", 0x1000, 0x20, b"one"),
        (b"1000 0x20 other\n", 0x1000, 0x20, b"other"),
        (b"00007F66F02B80A0 0000000000000ABC Upper\n", 0x7f66_f02b_80a0, 0xabc, b"Upper"),
        (b"00000000000000001000 20 twenty digits\n", 0x1000, 0x20, b"twenty digits"),
        (b"1000\t20\ttabs\n", 0x1000, 0x20, b"tabs"),
        (b"  1000   20   blanks  inside  \n", 0x1000, 0x20, b"blanks  inside"),
        (b"1000 20 dos\r\n", 0x1000, 0x20, b"dos"),
        (b"1000 20 unix", 0x1000, 0x20, b"unix"),
        (b"1000 20 dos", 0x1000, 0x20, b"dos"),
        (b"1000 20\n", 0x1000, 0x20, b""),
        (b"1000 20 \n", 0x1000, 0x20, b""),
        (b"1000 20 \r\n", 0x1000, 0x20, b""),
        (b"1000 20 (file:4)\n", 0x1000, 0x20, b"(file:4)"),
        (b"1000 0 nothing\n", 0x1000, 0, b"nothing"),
        (b"0 20 origin\n", 0, 0x20, b"origin"),
        (b"1000 20 a\x1b[31m\0b\rc\n", 0x1000, 0x20, b"a\x1b[31m\0b\rc"),
        (b"1000 20 \xff\xfe\n", 0x1000, 0x20, b"\xff\xfe"),
        (b"ffffffffffffff00 ff edge\n", 0xffff_ffff_ffff_ff00, 0xff, b"edge"),
        (b"1000 20 # not a comment\n", 0x1000, 0x20, b"# not a comment"),
        (&long_line, 0x1000, 0x20, &long),
    ];
    for &(line, address, size, name) in cases {
        assert_eq!(one(line), Ok((address, size, name)), "{}", line.escape_ascii());
    }
}

#[test]
fn says_why_a_line_is_no_entry() {
    let cases: &[(&[u8], Cause)] = &[
        (b"hello 20 f\n", Cause::NoAddress),
        (b"0x 20 f\n", Cause::NoAddress),
        (b"-1000 20 f\n", Cause::NoAddress),
        (b"10g0 20 f\n", Cause::NoAddress),
        (b"\0\0\0\0\n", Cause::NoAddress),
        (b"1000\n", Cause::NoSize),
        (b"1000 \n", Cause::NoSize),
        (b"1000 main 20\n", Cause::NoSize),
        (b"1000 0x f\n", Cause::NoSize),
        (b"10000000000000000 20 f\n", Cause::AddressTooLarge),
        (b"1000 10000000000000000 f\n", Cause::SizeTooLarge),
        (b"1000 100000000000000000000000000000000 f\n", Cause::SizeTooLarge),
        (
            b"ffffffffffffff00 100 f\n",
            Cause::EndOverflows { address: 0xffff_ffff_ffff_ff00, size: 0x100 },
        ),
    ];
    for &(line, cause) in cases {
        assert_eq!(one(line), Err(cause), "{}", line.escape_ascii());
    }
}

#[test]
fn goes_on_behind_a_bad_line_and_knows_the_places() {
    let read: Vec<_> = entries(b"1000 20 first\nnonsense\n\n \r\n2000 20 last").collect();
    let first = Entry { offset: 0, line: 1, address: 0x1000, size: 0x20, name: b"first" };
    let last = Entry { offset: 27, line: 5, address: 0x2000, size: 0x20, name: b"last" };
    let error = Error { offset: 14, line: 2, cause: Cause::NoAddress };
    assert_eq!(read, [Ok(first), Err(error), Ok(last)]);
    assert_eq!(
        error.to_string(),
        "line 2 (offset 0xe): the line does not begin with a hexadecimal address"
    );
}

#[test]
fn nothing_is_in_an_empty_file() {
    assert_eq!(entries(b"").count(), 0);
    assert_eq!(entries(b"\n\r\n \t\n").count(), 0);
}
