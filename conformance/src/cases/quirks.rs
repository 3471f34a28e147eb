//! What known writers do.

use crate::case::{Case, case};
use crate::reading::Code;
use crate::records::Header;

/// Codes with lines from their first to their last byte.
fn codes(count: u32) -> Vec<Code> {
    let lined = |number: u32| {
        let code = Code::number(number);
        let last = code.size - 2;
        code.lined(&[
            (0, "/src/app.js", number, 3),
            (48, "/src/app.js", number + 1, 9),
            (last, "/src/app.js", number + 2, 1),
        ])
    };
    (1..=count).map(lined).collect()
}

fn biased(name: &str, rule: &'static str, header: Header, bias: u64, has_vma: bool) -> Case {
    codes(10).iter().fold(case(name, rule).needs(&["lines"]).header(header), |case, code| {
        let vma = if has_vma { code.address } else { 0 };
        case.write(|file| file.debug_info(code, bias).load_at(code, vma, code.address))
            .finds(code.event())
    })
}

pub(super) fn cases() -> Vec<Case> {
    let usual = Header::default();
    let v8 = Header { pad1: 0xdead_beef, time: 1_700_000_000_000_000, ..usual };
    let arm = Header { machine: 40, pad1: 0xdead_beef, ..usual };
    vec![
        biased(
            "quirk-v8-bias",
            "V8 adds 64 to the addresses of all entries: readers detect and subtract it.",
            v8,
            0x40,
            true,
        ),
        biased("quirk-v8-bias-32", "V8 on 32-bit machines adds 52.", arm, 0x34, true),
        biased(
            "quirk-llvm-bias",
            "LLVM adds 64 to the addresses of entries as well, and version 14 writes 0 into vma.",
            usual,
            0x40,
            false,
        ),
        no_bias(),
        garbled(v8),
    ]
}

/// Codes of which some have their first line at byte 64.
fn no_bias() -> Case {
    let case = case(
        "quirk-no-bias",
        "Without a bias, lines that begin 64 bytes into their code stay where they are.",
    );
    (1..=10).fold(case.needs(&["lines"]), |case, number| {
        let first = if number % 2 == 0 { 64 } else { 0 };
        let code = Code::number(number)
            .lined(&[(first, "/src/a.lang", number, 1), (80, "/src/a.lang", 99, 1)]);
        case.write(|file| file.debug_info(&code, 0)).load(&code)
    })
}

/// V8's file names from freed memory: two words of the allocator in the first 16 bytes.
fn garbled(v8: Header) -> Case {
    let case = case(
        "quirk-v8-garbled-names",
        "V8 writes some file names from freed memory, with NULs in the first 16 bytes: the entries \
         are found by their addresses, and the name by the code's.",
    );
    let path = "/srv/application/lib/render.js";
    // One code is concerned. A reader that detects the bias from the data must not be misled by it.
    codes(30).into_iter().fold(case.needs(&["lines"]).header(v8), |case, mut code| {
        code.name = format!("JS:*render {path}:{}:9", code.index).into_bytes();
        for line in &mut code.lines {
            line.file = path.as_bytes().to_vec();
        }
        let mut written = code.lines.clone();
        if code.index == 24 {
            for line in &mut written {
                line.file[..8].copy_from_slice(&0x0000_5581_1234_5670_u64.to_le_bytes());
                line.file[8..16].copy_from_slice(&0x7788_99aa_bbcc_0011_u64.to_le_bytes());
            }
        }
        case.write(|file| file.entries(&code, &written, 0x40)).load(&code)
    })
}
