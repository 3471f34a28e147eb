//! Files that were cut off or damaged: what could be read is kept.

use crate::bytes::Bytes;
use crate::case::{Case, Reading};
use crate::reading::{Code, damage};
use crate::records::{Header, unwind_tables};

type Write = for<'a> fn(&'a mut Bytes, &Code) -> &'a mut Bytes;

/// A file whose last record is cut off to its first `keep` bytes.
fn cut(name: &str, rule: &'static str, keep: usize, last: Write) -> Case {
    let [a, b] = [1, 2].map(Code::number);
    let b = Code {
        unwind: Some(unwind_tables(&b, false)),
        ..b.clone().lined(&[(0, "/src/b.lang", 5, 1), (32, "/src/b.lang", 6, 3)])
    };
    let header = Header::default();
    let mut file = header.file();
    file.load(&a);
    let start = file.out.len();
    last(&mut file, &b);
    assert!(start + keep < file.out.len(), "{name}");
    file.out.truncate(start + keep);
    let reading = Reading::of(&header, vec![a.event()]).ends("cut-off");
    Case::dump(name, rule, &["name"], file, reading)
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let d = Code { time: c.time + 10, address: c.address + 512, ..c.clone() };
    let load: Write = Bytes::load;
    vec![
        cut("cut-off-in-record-header", "A file may end in a record's header.", 10, load),
        cut("cut-off-in-load-fields", "A file may end in the fields of a LOAD.", 40, load),
        cut("cut-off-in-load-name", "A file may end in the name of a LOAD.", 60, load),
        cut("cut-off-in-load-code", "A file may end in the code of a LOAD.", 120, load),
        cut("cut-off-in-debug-entries", "A file may end in a DEBUG_INFO.", 50, |file, code| {
            file.debug_info(code, 0)
        }),
        cut("cut-off-in-unwinding", "A file may end in an UNWINDING_INFO.", 60, |file, code| {
            file.unwinding(code)
        }),
        Case::usual(
            "cut-off-before-load",
            "A file may end between a DEBUG_INFO and its LOAD.",
            &["name"],
            |file| file.load(&a).debug_info(&b.clone().lined(&[(0, "/src/b.lang", 1, 1)]), 0),
            vec![a.event()],
        ),
        Case::usual(
            "zeros-at-end",
            "Zeros at the end are space that was reserved and not used.",
            &["name"],
            |file| file.load(&a).raw(&[0; 100]),
            vec![a.event()],
        )
        .ends("zeros"),
        Case::usual(
            "hole",
            "Behind a hole of zeros, the records go on; a LOAD itself begins with zeros.",
            &["name"],
            |file| file.load(&a).raw(&[0; 333]).load(&b).load(&c),
            vec![a.event(), damage(), b.event(), c.event()],
        ),
        Case::usual(
            "hole-between",
            "DEBUG_INFO before a hole does not belong to a LOAD behind it.",
            &["lines"],
            |file| {
                file.load(&a).debug_info(&b.clone().lined(&[(0, "/src/b.lang", 1, 1)]), 0);
                file.raw(&[0; 64]).load(&b)
            },
            vec![a.event(), damage(), b.event()],
        ),
        Case::usual(
            "record-size-below-16",
            "A record of less than 16 bytes is damage; the records behind it are read.",
            &["name"],
            |file| file.load(&a).u32(2).u32(8).raw(&[0x77; 9]).load(&b).load(&c),
            vec![a.event(), damage(), b.event(), c.event()],
        ),
        Case::usual(
            "record-size-beyond-file",
            "A record that claims to extend past complete records is damage.",
            &["name"],
            |file| {
                file.load(&a);
                let start = file.out.len();
                file.load(&b);
                file.set_u32(start + 4, 0x7fff_fff0);
                file.load(&c).load(&d)
            },
            vec![a.event(), damage(), c.event(), d.event()],
        ),
        Case::usual(
            "torn-record",
            "Half of a record, followed by records of another thread, is damage.",
            &["name"],
            |file| {
                file.load(&a);
                let start = file.out.len();
                file.load(&b);
                file.out.truncate(start + 70);
                file.load(&c).load(&d)
            },
            vec![a.event(), damage(), c.event(), d.event()],
        ),
        Case::usual(
            "garbage-at-end",
            "Bytes behind the last record that are no record are damage.",
            &["name"],
            |file| file.load(&a).raw(&[0xfd; 75]),
            vec![a.event(), damage()],
        )
        .ends("damaged"),
    ]
}
