//! Unwind info: what the codes brought against what the image says, address by address.

mod common;

use code_image::{Code, EhFrame, Endian, Target};
use common::cfi::{rules_of_codes, rules_of_image};
use common::{EM_X86_64, write};

const X86_64: fn() -> Target = || Target::new(EM_X86_64, Endian::Little);

/// Bytes from hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// CPython 3.13's `-X perf_jit`, a trampoline of 15 bytes.
const CPYTHON: &str = "1400000000000000 017a520001781001 1b0c070890010000
                       140000001c000000 d0ffffff0f000000 00480e10460e0800";

/// Node 18's `--perf-prof-unwinding-info`, `*fib` of 364 bytes.
const V8: &str = "1800000000000000 037a4c5200017810 02ff1b0c07089001 00000000
                  20000000 20000000 6cfeffff 6a010000 00500e108602430d 0602ef0d07410e08
                  520c061000000000";

fn code<'a>(start: u64, size: u64, eh_frame: &'a [u8]) -> Code<'a> {
    Code {
        start,
        size,
        visible: start..start + size,
        name: b"f",
        unwind: Some(EhFrame { bytes: eh_frame }),
        ..Code::default()
    }
}

fn compare(target: Target, codes: &[Code<'_>]) -> code_image::Finished {
    let first = codes.first().unwrap().visible.start;
    let image = write(target, first..codes.last().unwrap().visible.end, codes);
    let expected = rules_of_codes(target, codes);
    let bias = image.finished.text.address - image.finished.text.file_offset;
    let got = rules_of_image(target, &image.path())
        .into_iter()
        .map(|(address, rule)| (address + bias, rule))
        .collect();
    assert_eq!(expected, got);
    image.finished.clone()
}

#[test]
fn cpython() {
    let eh_frame = bytes(CPYTHON);
    let codes = [
        code(0x7f89_3b38_7000, 15, &eh_frame),
        code(0x7f89_3b38_7010, 15, &eh_frame),
        code(0x7f89_3b38_7110, 15, &eh_frame),
    ];
    let unwind = compare(X86_64(), &codes).unwind;
    assert_eq!((unwind.fdes, unwind.cies), (3, 1));
}

/// V8 says that its frames have no language data (`L` with the encoding "omitted"), which the oracle
/// does not read; without that sentence both must find the same.
#[test]
fn v8() {
    let start = 0x7f99_e74e_8e00;
    let original = bytes(V8);
    let readable = bytes(&V8.replace("7a4c52", "7a5252"));
    let image = write(X86_64(), start..start + 364, &[code(start, 364, &original)]);
    let unwind = image.finished.unwind;
    assert_eq!((unwind.fdes, unwind.cies), (1, 1));
    let got = rules_of_image(X86_64(), &image.path());
    let expected = rules_of_codes(X86_64(), &[code(start, 364, &readable)]);
    let expected = expected.into_iter().map(|(at, rule)| (at - start + 0x1e00, rule)).collect();
    assert_eq!(got, expected);
    assert_eq!(got.len(), 0x16a);
}
