//! Two functions on x86-64, one with lines and unwind info.

use code_image::{Code, EhFrame, Line};

pub const START: u64 = 0x7f00_0000_0040;

/// `push rbp; mov rbp, rsp; xor eax, eax; pop rbp; ret`: no line for the first instruction.
pub const COMPUTE: [u8; 8] = [0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3];
pub const LINES: [Line<'static>; 3] = [
    Line { address: START + 1, file: b"/src/app/main.js", line: 10, column: 3 },
    Line { address: START + 4, file: b"/src/app/main.js", line: 12, column: 7 },
    Line { address: START + 6, file: b"/src/lib/util.js", line: 300, column: 1 },
];
/// One FDE, with the address 40 bytes before its own position.
pub const EH_FRAME: [u8; 48] = [
    0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, // CIE
    0x0c, 7, 8, 0x90, 1, 0, 0, // at the call: CFA = rsp + 8, return address below it
    0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd8, 0xff, 0xff, 0xff, 8, 0, 0, 0, 0, // FDE
    0x41, 0x0e, 0x10, 0x86, 2, 0, 0, // one byte on: CFA = rsp + 16, rbp at CFA - 16
];

/// The two functions, a page apart.
pub fn sample_codes() -> [Code<'static>; 2] {
    let compute = Code {
        start: START,
        size: 8,
        visible: START..START + 8,
        name: b"compute",
        bytes: &COMPUTE,
        lines: &LINES,
        unwind: Some(EhFrame { bytes: &EH_FRAME }),
        ..Code::default()
    };
    let stub = Code {
        start: START + 0x1000,
        size: 2,
        visible: START + 0x1000..START + 0x1002,
        name: b"stub",
        bytes: &[0x90, 0xc3],
        ..Code::default()
    };
    [compute, stub]
}
