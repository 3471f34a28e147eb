//! LOAD.

use crate::bytes::{Bytes, id};
use crate::case::{Case, Reading};
use crate::reading::{Code, damage};
use crate::records::Header;

/// A file of these codes, each of which a LOAD describes completely.
fn loads(name: &str, rule: &'static str, needs: &'static [&'static str], codes: &[Code]) -> Case {
    Case::codes(name, rule, needs, codes, Bytes::load)
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let empty = Code { size: 0, bytes: Some(Vec::new()), ..a.clone() };
    let long = ["grüße ", &"long name ".repeat(40)].concat();
    let again = Code { address: a.address, ..b.clone() };
    let overlapping = Code { address: a.address + 64, ..b.clone() };
    let equal = Code { time: a.time, ..b.clone() };
    let earlier = Code { time: a.time - 500, ..b.clone() };
    let wrapping = Code { address: u64::MAX - 0x0f, ..a.clone() };
    let other_pid = Code { pid: a.pid + 5, ..b.clone() };
    let vma = |name, rule, vma: u64, code_addr: u64, header: Header| {
        let mut file = header.file();
        file.load_at(&a, vma, code_addr);
        Case::dump(name, rule, &["address"], file, Reading::of(&header, vec![a.event()]))
    };
    let usual = Header::default();
    let arm = Header { machine: 40, ..usual };
    vec![
        loads("load", "A LOAD is a code.", &["name", "bytes"], &[a.clone(), b.clone(), c.clone()]),
        loads(
            "load-name-empty",
            "A name may be empty.",
            &["name"],
            &[a.clone().named(b""), b.clone()],
        ),
        loads(
            "load-name-not-utf8",
            "Names are bytes, also if they are not UTF-8.",
            &["name"],
            &[a.clone().named(b"caf\xe9 \xff\xfe"), b.clone()],
        ),
        loads(
            "load-name-long",
            "A name may have spaces, characters outside of ASCII, and hundreds of bytes.",
            &["name"],
            &[a.clone().named(long.as_bytes()), b.clone()],
        ),
        loads(
            "load-size-0",
            "A code may have no bytes and size 0.",
            &["name"],
            &[empty, b.clone()],
        ),
        loads(
            "load-index-reused",
            "Two codes with one code_index are two codes.",
            &["name"],
            &[a.clone(), Code { index: a.index, ..b.clone() }],
        ),
        loads(
            "load-replaces",
            "A LOAD at the address of an earlier code is another code.",
            &["name"],
            &[a.clone(), again],
        ),
        loads(
            "load-overlaps",
            "A LOAD may overlap an earlier code.",
            &["name"],
            &[a.clone(), overlapping],
        ),
        loads(
            "load-times-equal",
            "Timestamps may be equal; file order then counts.",
            &["time"],
            &[a.clone(), equal],
        ),
        loads(
            "load-times-descend",
            "Timestamps may go backwards.",
            &["time"],
            &[a.clone(), earlier],
        ),
        loads(
            "load-address-wraps",
            "The claimed end of a code may exceed 64 bits.",
            &["address"],
            &[wrapping, b.clone()],
        ),
        loads(
            "load-other-process",
            "The process id of a record may differ from the header's.",
            &["pid"],
            &[a.clone(), other_pid],
        ),
        Case::usual(
            "load-padded",
            "The code directly follows the name; bytes after it are padding.",
            &["bytes"],
            |file| file.load_with(&a, a.size, &[0xcc; 8]).load(&b),
            vec![a.event(), b.event()],
        ),
        Case::usual(
            "load-without-bytes",
            "A LOAD that claims a size and ends with its name has no bytes (.NET).",
            &["name", "size"],
            |file| file.load_with(&Code { bytes: None, ..a.clone() }, 4096, b"").load(&b),
            vec![Code { bytes: None, size: 4096, ..a.clone() }.event(), b.event()],
        ),
        Case::usual(
            "load-name-not-terminated",
            "A LOAD whose name has no NUL is damage; the next record is read.",
            &["name"],
            |file| {
                file.record(id::LOAD, a.time, |file| {
                    file.u32(a.pid).u32(a.tid).u64(a.address).u64(a.address);
                    file.u64(4).u64(a.index).raw(b"no end of the name")
                });
                file.load(&b)
            },
            vec![damage(), b.event()],
        ),
        Case::usual(
            "load-code-too-large",
            "A LOAD that claims more code than its record has is damage; the next record is read.",
            &["name"],
            |file| file.load_with(&a, a.size + 1000, b"").load(&b),
            vec![damage(), b.event()],
        ),
        Case::usual(
            "load-code-size-huge",
            "A code_size of nearly 64 bits is damage, and neither overflows nor allocates.",
            &["name"],
            |file| file.load_with(&a, u64::MAX - 3, b"").load(&b),
            vec![damage(), b.event()],
        ),
        Case::usual(
            "load-too-small",
            "A LOAD without all of its fields is damage; the next record is read.",
            &["name"],
            |file| {
                file.record(id::LOAD, a.time, |file| file.u32(a.pid).u32(a.tid).u64(a.address));
                file.load(&b)
            },
            vec![damage(), b.event()],
        ),
        vma(
            "load-vma-0",
            "A code is at code_addr; vma does not count (LLVM 14 writes 0).",
            0,
            a.address,
            usual,
        ),
        vma(
            "load-vma-differs",
            "A code is at code_addr, also if vma is another address.",
            a.address + 0x40,
            a.address,
            usual,
        ),
        vma(
            "load-thumb-bit",
            "On 32-bit ARM, bit 0 of the address is not part of it.",
            a.address + 1,
            a.address + 1,
            arm,
        ),
    ]
}
