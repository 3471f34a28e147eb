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

    let usual = Header::default();
    let read = |name, rule, header: Header| {
        let mut file = header.file();
        file.load(&code);
        Case::dump(name, rule, &["name"], file, Reading::of(&header, vec![code.event()]))
    };
    let refused = |name, rule, file| Case::dump(name, rule, &["name"], file, Reading::refused());
    let larger = Header { total_size: 48, ..usual };
    let mut larger_file = larger.file();
    larger_file.raw(&[0x5a; 8]).load(&code);
    let [version_0, version_2] = [0, 2].map(|version| Header { version, ..usual });
    let of_version_2 = version_2.file().load(&code).clone();
    let mut wrong = usual.file().load(&code).clone();
    wrong.out[..4].copy_from_slice(b"DTiK");
    let cut = Bytes { out: usual.file().out[..39].to_vec(), is_big: false };
    let beyond = Header { total_size: 4096, ..usual };
    let beyond_file = beyond.file().load(&code).clone();
    let microseconds = Header { time: 1_700_000_000_000_000, ..usual };
    vec![
        read("header-little-endian", "A file that begins with DTiJ is little-endian.", usual),
        Case::dump(
            "header-big-endian",
            "A file that begins with JiTD is big-endian, in all its records.",
            &["name", "lines"],
            big_file,
            Reading::of(&big, vec![big_code.event()]),
        ),
        read("header-version-0", "Version 0 has the layout of version 1.", version_0),
        refused(
            "header-version-2",
            "A version above 1 is refused: its layout is unknown.",
            of_version_2,
        ),
        Case::dump(
            "header-larger",
            "The first record begins at total_size: the rest of a larger header is skipped.",
            &["name"],
            larger_file,
            Reading::of(&larger, vec![code.event()]),
        ),
        read(
            "header-size-zero",
            "A header that claims fewer than 40 bytes has 40.",
            Header { total_size: 0, ..usual },
        ),
        read(
            "header-arch-timestamps",
            "Flag bit 0: timestamps are counts of the processor's clock.",
            Header { flags: 1, ..usual },
        ),
        read(
            "header-unknown-flags",
            "Unknown flags do not change the records.",
            Header { flags: 2, ..usual },
        ),
        read(
            "header-padding",
            "The word pad1 has no meaning.",
            Header { pad1: 0x1234_5678, ..usual },
        ),
        read(
            "header-wall-clock",
            "The header's timestamp may be of another clock than the records' (CPython: microseconds).",
            microseconds,
        ),
        refused("header-magic-wrong", "A file with another magic number is refused.", wrong),
        refused("header-cut-off", "A file of less than 40 bytes is refused.", cut),
        Case::usual(
            "header-alone",
            "A file without records is whole, and has no code.",
            &["end"],
            |file| file,
            vec![],
        ),
        Case::dump(
            "header-larger-than-file",
            "A header that claims more bytes than the file has is cut off.",
            &["name"],
            beyond_file,
            Reading::of(&beyond, vec![]).ends("cut-off"),
        ),
    ]
}
