//! Files that were cut off or damaged: what could be read is kept.

use crate::bytes::Bytes;
use crate::case::{Case, case};
use crate::reading::Code;
use crate::records::unwind_tables;

type Write = for<'a> fn(&'a mut Bytes, &Code) -> &'a mut Bytes;

/// A file whose last record is cut off to its first `keep` bytes.
fn cut(name: &str, rule: &'static str, keep: usize, last: Write) -> Case {
    let [a, b] = [1, 2].map(Code::number);
    let b = Code {
        unwind: Some(unwind_tables(&b, false)),
        ..b.clone().lined(&[(0, "/src/b.lang", 5, 1), (32, "/src/b.lang", 6, 3)])
    };
    let cut = |file: &mut Bytes| {
        let start = file.out.len();
        last(file, &b);
        assert!(start + keep < file.out.len(), "{name}");
        file.out.truncate(start + keep);
    };
    let case = case(name, rule).load(&a).ends("cut-off");
    case.write(|file| {
        cut(file);
        file
    })
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c] = [1, 2, 3].map(Code::number);
    let d = Code { time: c.time + 10, address: c.address + 512, ..c.clone() };
    let lined = b.clone().lined(&[(0, "/src/b.lang", 1, 1)]);
    let load: Write = Bytes::load;
    let debug_info: Write = |file, code| file.debug_info(code, 0);
    let unwinding: Write = Bytes::unwinding;
    vec![
        cut("cut-off-in-record-header", "A file may end in a record's header.", 10, load),
        cut("cut-off-in-load-fields", "A file may end in the fields of a LOAD.", 40, load),
        cut("cut-off-in-load-name", "A file may end in the name of a LOAD.", 60, load),
        cut("cut-off-in-load-code", "A file may end in the code of a LOAD.", 120, load),
        cut("cut-off-in-debug-entries", "A file may end in a DEBUG_INFO.", 50, debug_info),
        cut("cut-off-in-unwinding", "A file may end in an UNWINDING_INFO.", 60, unwinding),
        case("cut-off-before-load", "A file may end between a DEBUG_INFO and its LOAD.")
            .load(&a)
            .write(|file| file.debug_info(&lined, 0)),
        case("zeros-at-end", "Zeros at the end are space that was reserved and not used.")
            .load(&a)
            .write(|file| file.raw(&[0; 100]))
            .ends("zeros"),
        case("hole", "Behind a hole of zeros, the records go on; a LOAD itself begins with zeros.")
            .load(&a)
            .damage(|file| file.raw(&[0; 333]))
            .load(&b)
            .load(&c),
        case("hole-between", "DEBUG_INFO before a hole does not belong to a LOAD behind it.")
            .needs(&["lines"])
            .load(&a)
            .damage(|file| file.debug_info(&lined, 0).raw(&[0; 64]))
            .load(&b),
        case(
            "record-size-below-16",
            "A record of less than 16 bytes is damage; the records behind it are read.",
        )
        .load(&a)
        .damage(|file| file.u32(2).u32(8).raw(&[0x77; 9]))
        .load(&b)
        .load(&c),
        case(
            "record-size-beyond-file",
            "A record that claims to extend past complete records is damage.",
        )
        .load(&a)
        .damage(|file| {
            let start = file.out.len();
            file.load(&b).set_u32(start + 4, 0x7fff_fff0)
        })
        .load(&c)
        .load(&d),
        case("torn-record", "Half of a record, followed by records of another thread, is damage.")
            .load(&a)
            .damage(|file| {
                let start = file.out.len();
                file.load(&b).out.truncate(start + 70);
                file
            })
            .load(&c)
            .load(&d),
        case("garbage-at-end", "Bytes behind the last record that are no record are damage.")
            .load(&a)
            .damage(|file| file.raw(&[0xfd; 75]))
            .ends("damaged"),
    ]
}
