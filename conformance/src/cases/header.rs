//! The header of the file.

use crate::bytes::Bytes;
use crate::case::{Case, case};
use crate::reading::Code;
use crate::records::{Header, unwind_tables};

pub(super) fn cases() -> Vec<Case> {
    let code = Code::number(1);
    let usual = Header::default();
    let big = Header { is_big: true, machine: 22, ..usual };
    let big_code = Code {
        unwind: Some(unwind_tables(&code, true)),
        ..code.clone().lined(&[(0, "/src/a.lang", 3, 1), (32, "/src/a.lang", 4, 5)])
    };
    let read = |name, rule, header: Header| case(name, rule).header(header).load(&code);
    vec![
        read("header-little-endian", "A file that begins with DTiJ is little-endian.", usual),
        case(
            "header-big-endian",
            "A file that begins with JiTD is big-endian, in all its records.",
        )
        .needs(&["name", "lines"])
        .header(big)
        .write(|file| file.debug_info(&big_code, 0).unwinding(&big_code))
        .load(&big_code),
        read(
            "header-version-0",
            "Version 0 has the layout of version 1.",
            Header { version: 0, ..usual },
        ),
        read(
            "header-version-2",
            "A version above 1 is refused: its layout is unknown.",
            Header { version: 2, ..usual },
        )
        .refused(),
        case(
            "header-larger",
            "The first record begins at total_size: the rest of a larger header is skipped.",
        )
        .header(Header { total_size: 48, ..usual })
        .write(|file| file.raw(&[0x5a; 8]))
        .load(&code),
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
            "The header's timestamp may be of another clock than the records' (CPython: \
             microseconds).",
            Header { time: 1_700_000_000_000_000, ..usual },
        ),
        read("header-magic-wrong", "A file with another magic number is refused.", usual)
            .write(|file| {
                file.out[..4].copy_from_slice(b"DTiK");
                file
            })
            .refused(),
        case("header-cut-off", "A file of less than 40 bytes is refused.")
            .write(|file| {
                file.out.truncate(39);
                file
            })
            .refused(),
        case("header-alone", "A file without records is whole, and has no code.").needs(&["end"]),
        case(
            "header-larger-than-file",
            "A header that claims more bytes than the file has is cut off.",
        )
        .header(Header { total_size: 4096, ..usual })
        .write(|file: &mut Bytes| file.load(&code))
        .ends("cut-off"),
    ]
}
