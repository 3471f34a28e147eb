//! The header of the file.

use crate::bytes::Bytes;
use crate::case::{Case, Reading};
use crate::reading::Code;
use crate::records::{Header, unwind_tables};

pub(super) fn cases() -> Vec<Case> {
    let code = Code::number(1);
    let big = Header { is_big: true, machine: 22, ..Header::default() };
    let big_code = Code {
        unwind: Some(unwind_tables(&code, true)),
        ..code.clone().lined(&[(0, "/src/a.lang", 3, 1), (32, "/src/a.lang", 4, 5)])
    };
    let mut big_file = big.file();
    big_file.debug_info(&big_code, 0).unwinding(&big_code).load(&big_code);

    let with = |name, rule, header: Header, extra: &[u8], is_refused: bool| {
        let mut file = header.file();
        file.raw(extra).load(&code);
        let reading =
            if is_refused { Reading::refused() } else { Reading::of(&header, vec![code.event()]) };
        Case::dump(name, rule, &["name"], file, reading)
    };
    let usual = Header::default();
    let mut cases = vec![
        with(
            "header-little-endian",
            "A file that begins with DTiJ is little-endian.",
            usual,
            b"",
            false,
        ),
        Case::dump(
            "header-big-endian",
            "A file that begins with JiTD is big-endian, in all its records.",
            &["name", "lines"],
            big_file,
            Reading::of(&big, vec![big_code.event()]),
        ),
        with(
            "header-version-0",
            "Version 0 has the layout of version 1.",
            Header { version: 0, ..usual },
            b"",
            false,
        ),
        with(
            "header-version-2",
            "A version above 1 is refused: its layout is unknown.",
            Header { version: 2, ..usual },
            b"",
            true,
        ),
        with(
            "header-larger",
            "The first record begins at total_size: the rest of a larger header is skipped.",
            Header { total_size: 48, ..usual },
            &[0x5a; 8],
            false,
        ),
        with(
            "header-size-zero",
            "A header that claims fewer than 40 bytes has 40.",
            Header { total_size: 0, ..usual },
            b"",
            false,
        ),
        with(
            "header-arch-timestamps",
            "Flag bit 0: timestamps are counts of the processor's clock.",
            Header { flags: 1, ..usual },
            b"",
            false,
        ),
        with(
            "header-unknown-flags",
            "Unknown flags do not change the records.",
            Header { flags: 2, ..usual },
            b"",
            false,
        ),
        with(
            "header-padding",
            "The word pad1 has no meaning.",
            Header { pad1: 0x1234_5678, ..usual },
            b"",
            false,
        ),
        with(
            "header-wall-clock",
            "The header's timestamp may be of another clock than the records' (CPython: microseconds).",
            Header { time: 1_700_000_000_000_000, ..usual },
            b"",
            false,
        ),
    ];
    let mut wrong = usual.file();
    wrong.load(&code);
    wrong.out[..4].copy_from_slice(b"DTiK");
    cases.push(Case::dump(
        "header-magic-wrong",
        "A file with another magic number is refused.",
        &["name"],
        wrong,
        Reading::refused(),
    ));
    let cut = Bytes { out: usual.file().out[..39].to_vec(), is_big: false };
    cases.push(Case::dump(
        "header-cut-off",
        "A file of less than 40 bytes is refused.",
        &["name"],
        cut,
        Reading::refused(),
    ));
    cases.push(Case::usual(
        "header-alone",
        "A file without records is whole, and has no code.",
        &["end"],
        |_| (),
        vec![],
    ));
    let larger = Header { total_size: 4096, ..usual };
    let mut file = larger.file();
    file.load(&code);
    cases.push(Case::dump(
        "header-larger-than-file",
        "A header that claims more bytes than the file has is cut off.",
        &["name"],
        file,
        Reading::of(&larger, vec![]).ends("cut-off"),
    ));
    cases
}
