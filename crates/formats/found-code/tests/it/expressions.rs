//! PCRE2's regular expressions.

use found_code::{Compilers, Pcre2Versions};

use crate::expression::{CODES, Expression, FORM_10_42, FORM_10_45, Form};
use crate::memory::{CODE, CODE_SIZE, Memory, Seen};

/// The opcodes of `(\w+)-[^x]{2,}` without case, in 10.42; the numbers of others are in the sources of each version.
fn opcodes(form: Form) -> Vec<u8> {
    let [group, capture, ket] = match form.minor {
        45.. => [137, 139, 122],
        _ => [134, 136, 121],
    };
    let capture = [capture, 0, 7, 0, 1, 87, 11, ket, 0, 7];
    // A hyphen, and what is not `x`: twice, and any number of times.
    let rest = [30, b'-', 80, 0, 2, b'x', 81, b'x'];
    let size = 3 + capture.len() + rest.len();
    [&[group, 0, size as u8][..], &capture, &rest, &[ket, 0, size as u8, 0]].concat()
}

fn memory(form: Form) -> Memory {
    let mut memory = Memory::new(crate::memory::FORMS[0]);
    Expression { form, code: &opcodes(form), options: 8, groups: 1 }.write(
        &mut memory,
        0x3000,
        CODE,
    );
    memory
}

fn seen(minor: u8) -> Seen {
    let compilers = Compilers { pcre2: Pcre2Versions::of(minor), ..Compilers::default() };
    Seen { compilers, ..Seen::default() }
}

const NAME: &str = "regex \"(?i)(\\w+)-[^x]{2,}\"";

#[test]
fn expressions_have_the_pattern_of_their_opcodes() {
    for form in [FORM_10_42, FORM_10_45] {
        let mut seen = seen(form.minor);
        assert_eq!(seen.poll(&memory(form)), [NAME], "{form:?}");
        let (code, since) = seen.codes.values().next().expect("a code");
        assert_eq!((code.address, code.size, *since), (CODE, 0x100, 0));
    }
}

#[test]
fn expressions_of_unknown_opcodes_have_a_hash() {
    for (minor, form) in [(63, FORM_10_42), (47, FORM_10_42), (40, FORM_10_45)] {
        let names = seen(minor).poll(&memory(form));
        let [name] = names.as_slice() else { panic!("{names:?}") };
        let hash = name.strip_prefix("regex #").unwrap_or_else(|| panic!("{name}"));
        assert!(hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
}

#[test]
fn of_unknown_versions_those_that_fit_must_agree() {
    let mut seen = Seen { compilers: Compilers::ALL, ..Seen::default() };
    assert_eq!(seen.poll(&memory(FORM_10_42)), [NAME]);
}

#[test]
fn expressions_that_go_and_come_are_noticed() {
    let mut memory = memory(FORM_10_42);
    let mut seen = seen(42);
    assert_eq!(seen.poll(&memory).len(), 1);
    // Freed: the allocator has overwritten the beginning of what describes the code.
    memory.u64(CODES, 0);
    assert!(seen.poll(&memory).is_empty());
    memory.u64(CODES, CODE + 0x1000);
    let found = (0..40).any(|_| seen.poll(&memory) == [NAME]);
    assert!(found, "{:?}", seen.codes);
    assert_eq!(
        seen.codes.values().map(|(code, _)| code.address).collect::<Vec<_>>(),
        [CODE + 0x1000]
    );
}

#[test]
fn an_expression_of_which_one_field_is_wrong_is_none() {
    let whole = memory(FORM_10_42);
    let names = |memory: &Memory| seen(42).poll(memory);
    assert_eq!(names(&whole), [NAME]);
    let block = 0x3000;
    // The allocator, the tables, the description of the code, the size of the block; the code.
    for at in [block, block + 8, block + 24, block + 32, block + 72, CODES] {
        let elsewhere = if at <= block + 24 { 0 } else { CODE + CODE_SIZE - 1 };
        for wrong in [0, 1, u64::MAX, elsewhere] {
            let mut memory = whole.clone();
            memory.u64(at, wrong);
            assert!(names(&memory).is_empty(), "{wrong:#x} at {at:#x}");
        }
    }
    // The magic number, the width, the limit, newlines, groups; the size of the code, its groups and its limit.
    for at in [80, 96, 104, 122, 128] {
        let mut memory = whole.clone();
        memory.u32(block + at, 0x7777_7777);
        assert!(names(&memory).is_empty(), "{at}");
    }
    for at in [48, 72, 76] {
        let mut memory = whole.clone();
        memory.u32(CODES + at, 0x7777_7777);
        assert!(names(&memory).is_empty(), "{at}");
    }
}

#[test]
fn versions_are_read_from_libraries() {
    let library = |version: &str| {
        let text = format!("\0ACCEPT\0F\0FAIL\0COMMIT\0\0{version}\0\0");
        elf(text.as_bytes())
    };
    let versions = |version| Compilers::find(library(version).as_slice()).pcre2;
    assert_eq!(versions("10.42 2022-12-11"), Pcre2Versions::of(42));
    assert_eq!(versions("10.45-RC1 2024-11-27"), Pcre2Versions::of(45));
    assert_eq!(versions("10.99 2031-11-27"), Pcre2Versions::OTHER);
    assert_eq!(versions("of which only parts are there"), Pcre2Versions::ALL);
    let other = elf(b"\0\x0010.42 2022-12-11\0");
    assert!(Compilers::find(other.as_slice()).is_empty());
}

/// A program for x86-64 with one segment of constants.
fn elf(constants: &[u8]) -> Vec<u8> {
    let mut elf = vec![0; 120];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[16] = 3;
    elf[18] = 62;
    elf[20] = 1;
    elf[32] = 64;
    elf[52] = 64;
    elf[54] = 56;
    elf[56] = 1;
    elf[64] = 1;
    elf[68] = 4;
    elf[72] = 120;
    elf[96..104].copy_from_slice(&(constants.len() as u64).to_le_bytes());
    elf[104..112].copy_from_slice(&(constants.len() as u64).to_le_bytes());
    elf.extend(constants);
    elf
}
