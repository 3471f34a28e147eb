//! Two functions on x86-64, one with lines and unwind info.

use code_image::VisibleCode;
use jit_code::{Code, Line, Unwind};

pub const START: u64 = 0x7f00_0000_0040;

/// `push rbp; mov rbp, rsp; xor eax, eax; pop rbp; ret`: no line for the first instruction.
pub const COMPUTE: [u8; 8] = [0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3];
pub const LINES: [Line<'static>; 3] = [
    Line::new(1, "/src/app/main.js", 10).column(3),
    Line::new(4, "/src/app/main.js", 12).column(7),
    Line::new(6, "/src/lib/util.js", 300).column(1),
];
/// One FDE, with the address 40 bytes before its own position.
pub const EH_FRAME: [u8; 48] = [
    0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, // CIE
    0x0c, 7, 8, 0x90, 1, 0, 0, // at the call: CFA = rsp + 8, return address below it
    0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd8, 0xff, 0xff, 0xff, 8, 0, 0, 0, 0, // FDE
    0x41, 0x0e, 0x10, 0x86, 2, 0, 0, // one byte on: CFA = rsp + 16, rbp at CFA - 16
];

/// The two functions, a page apart.
pub fn sample_codes() -> [VisibleCode<'static>; 2] {
    let compute = Code::new(&COMPUTE)
        .runs_at(START)
        .named("compute")
        .lines(&LINES)
        .unwind(Unwind::EhFrame(&EH_FRAME));
    let stub = Code::new(&[0x90, 0xc3]).runs_at(START + 0x1000).named("stub");
    [compute, stub].map(VisibleCode::whole)
}

/// The span of [`with_codes_of_any_machine`].
pub const ANY_MACHINE: std::ops::Range<u64> = 0x10_0040..0x10_4000;

/// Passes codes to `check`: two side by side and one far behind, of which two have one name and lines, and one has neither.
pub fn with_codes_of_any_machine(check: impl Fn(&[VisibleCode<'_>])) {
    // The same places, as offsets in the first and in the last code.
    let [first, last] = [0, 0x1fc0].map(|start: u32| {
        [
            Line::new(0_u32.wrapping_sub(start), "/src/a.js", 3).column(9),
            Line::new(8_u32.wrapping_sub(start), "b.js", 300),
            Line::new(0x1fc0 - start, "/a.js", 0x8000_0000).column(u32::MAX),
        ]
    });
    let code = |start: u64, name: &'static str, lines| {
        VisibleCode::whole(Code::new(&[0; 16]).runs_at(start).named(name).lines(lines))
    };
    check(&[code(0x10_0040, "a", &first), code(0x10_0050, "", &[]), code(0x10_2000, "a", &last)]);
}
