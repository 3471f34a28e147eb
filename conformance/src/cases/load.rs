//! LOAD.

use crate::bytes::id;
use crate::case::{Case, case};
use crate::reading::Code;
use crate::records::Header;

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let long = ["grüße ", &"long name ".repeat(40)].concat();
    let without_bytes = Code { bytes: None, size: 4096, ..a.clone() };
    let usual = Header::default();
    let arm = Header { machine: 40, ..usual };
    let at = |name, rule, header, vma, code_addr| {
        let case = case(name, rule).needs(&["address"]).header(header);
        case.write(|file| file.load_at(&a, vma, code_addr)).finds(a.event())
    };
    vec![
        case("load", "A LOAD is a code.").needs(&["name", "bytes"]).load(&a).load(&b).load(&c),
        case("load-name-empty", "A name may be empty.").load(&a.clone().named(b"")).load(&b),
        case("load-name-not-utf8", "Names are bytes, also if they are not UTF-8.")
            .load(&a.clone().named(b"caf\xe9 \xff\xfe"))
            .load(&b),
        case(
            "load-name-long",
            "A name may have spaces, characters outside of ASCII, and hundreds of bytes.",
        )
        .load(&a.clone().named(long.as_bytes()))
        .load(&b),
        case("load-size-0", "A code may have no bytes and size 0.")
            .load(&Code { size: 0, bytes: Some(Vec::new()), ..a.clone() })
            .load(&b),
        case("load-index-reused", "Two codes with one code_index are two codes.")
            .load(&a)
            .load(&Code { index: a.index, ..b.clone() }),
        case("load-replaces", "A LOAD at the address of an earlier code is another code.")
            .load(&a)
            .load(&Code { address: a.address, ..b.clone() }),
        case("load-overlaps", "A LOAD may overlap an earlier code.")
            .load(&a)
            .load(&Code { address: a.address + 64, ..b.clone() }),
        case("load-times-equal", "Timestamps may be equal; file order then counts.")
            .needs(&["time"])
            .load(&a)
            .load(&Code { time: a.time, ..b.clone() }),
        case("load-times-descend", "Timestamps may go backwards.")
            .needs(&["time"])
            .load(&a)
            .load(&Code { time: a.time - 500, ..b.clone() }),
        case("load-address-wraps", "The claimed end of a code may exceed 64 bits.")
            .needs(&["address"])
            .load(&Code { address: u64::MAX - 0x0f, ..a.clone() })
            .load(&b),
        case("load-other-process", "The process id of a record may differ from the header's.")
            .needs(&["pid"])
            .load(&a)
            .load(&Code { pid: a.pid + 5, ..b.clone() }),
        case("load-padded", "The code directly follows the name; bytes after it are padding.")
            .needs(&["bytes"])
            .write(|file| file.padded_load(&a, &[0xcc; 8]))
            .finds(a.event())
            .load(&b),
        case(
            "load-without-bytes",
            "A LOAD that claims a size and ends with its name has no bytes (.NET).",
        )
        .needs(&["name", "size"])
        .load(&without_bytes)
        .load(&b),
        case(
            "load-name-not-terminated",
            "A LOAD whose name has no NUL is damage; the next record is read.",
        )
        .damage(|file| {
            file.record(id::LOAD, a.time, |file| {
                file.u32(a.pid).u32(a.tid).u64(a.address).u64(a.address);
                file.u64(4).u64(a.index).raw(b"no end of the name")
            })
        })
        .load(&b),
        case(
            "load-code-too-large",
            "A LOAD that claims more code than its record has is damage; the next record is read.",
        )
        .damage(|file| file.load(&Code { size: a.size + 1000, ..a.clone() }))
        .load(&b),
        case(
            "load-code-size-huge",
            "A code_size of nearly 64 bits is damage, and neither overflows nor allocates.",
        )
        .damage(|file| file.load(&Code { size: u64::MAX - 3, ..a.clone() }))
        .load(&b),
        case(
            "load-too-small",
            "A LOAD without all of its fields is damage; the next record is read.",
        )
        .damage(|file| {
            file.record(id::LOAD, a.time, |file| file.u32(a.pid).u32(a.tid).u64(a.address))
        })
        .load(&b),
        at(
            "load-vma-0",
            "A code is at code_addr; vma does not count (LLVM 14 writes 0).",
            usual,
            0,
            a.address,
        ),
        at(
            "load-vma-differs",
            "A code is at code_addr, also if vma is another address.",
            usual,
            a.address + 0x40,
            a.address,
        ),
        at(
            "load-thumb-bit",
            "On 32-bit ARM, bit 0 of the address is not part of it.",
            arm,
            a.address + 1,
            a.address + 1,
        ),
    ]
}
