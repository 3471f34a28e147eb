//! What a host says of a code that cannot be true is reported, and the rest of it is written.
#![cfg(target_os = "linux")]

use crate::common::listening;
use jitscribe::{Builder, Code, Line, Row, Scribe, Subject, Unwind};

/// The notices about descriptions when these codes are announced.
fn said(builder: Builder, codes: &[Code<'_>]) -> Vec<String> {
    let (builder, heard) = listening(builder);
    let scribe = builder.build();
    for code in codes {
        assert_ne!(scribe.load(code).into_raw(), 0, "{code:?}");
    }
    let heard = heard.lock().unwrap();
    let about = heard.iter().filter(|(subject, _)| *subject == Subject::Description);
    about.map(|(_, text)| text.clone()).collect()
}

#[test]
fn the_first_mistake_of_each_kind_is_reported_or_all() {
    const OUT_OF_ORDER: &[Row<'_>] = &[Row::new(4, 6, 16), Row::new(1, 7, 16)];
    const REGISTER: &[Row<'_>] = &[Row::new(1, 99, 16)];
    let lines = [Line::new(0, "f.lang", 1), Line::new(64, "f.lang", 2)];
    let inside = [Line::new(63, "f.lang", 2)];
    let code = |name| Code::at(0x1000, 64).named(name);
    let codes = [
        code("good").unwind(Unwind::FRAME_POINTER).lines(&inside),
        code("order").unwind(Unwind::Rows(OUT_OF_ORDER)),
        code("register").unwind(Unwind::Rows(REGISTER)),
        code("junk").unwind(Unwind::EhFrame(b"junk that is no section")),
        code("behind").lines(&lines),
        code("again").lines(&lines),
        code("good, too").unwind(Unwind::Rows(&[])).lines(&inside),
    ];
    let first = said(Scribe::builder(), &codes);
    let [unwind, lines] = &first[..] else { panic!("{first:?}") };
    assert!(unwind.contains("the unwind info of order is not used: unwind row 1 is not behind"));
    assert!(lines.contains("line 2 of behind is at offset 64, but the code has 64 bytes"));

    let all = said(Scribe::builder().strict(), &codes);
    for (name, text) in ["order", "register", "junk", "behind", "again"].iter().zip(&all) {
        assert!(text.contains(&format!(" of {name} is ")), "{name}: {text}");
    }
    assert_eq!(all.len(), 5, "{all:?}");
    assert!(said(Scribe::builder().strict(), &codes[..1]).is_empty());
}
