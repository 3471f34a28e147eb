//! Code of which more is told than the format has room for.

use jitdump::extension::Kind;
use jitdump::{ExtendedCode, Inlined, LineEntry};

use crate::inject::scene::{CODE, DUMP, Jit, MS, PID, begun};

fn code(time: u64, address: u64, name: &str) -> ExtendedCode<'_> {
    ExtendedCode {
        timestamp: time * MS,
        address,
        size: 0x40,
        name: name.as_bytes(),
        kind: Kind::Stub,
        tier: Some(b"baseline"),
        ..ExtendedCode::default()
    }
}

#[test]
fn code_has_its_address_until_it_dies() {
    let bytes = [0x90; 0x40];
    let jit = Jit::begun()
        .extended(&ExtendedCode { died: Some(30 * MS), ..code(20, CODE, "lean") })
        // In a log, the later may stand before the earlier.
        .extended(&ExtendedCode { bytes: Some(&bytes), ..code(60, CODE, "last") })
        .extended(&ExtendedCode {
            bytes: Some(&bytes),
            died: Some(50 * MS),
            ..code(40, CODE, "full")
        });
    let (scene, mut recording) = begun(jit);
    scene.expect(
        &mut recording,
        &[
            (PID, 20, 1, "lean+0x1 jit-5000007-0.elf"),
            (PID, 29, 2, "lean+0x2 jit-5000007-0.elf"),
            (PID, 40, 3, "full+0x3 jit-5000007-0-1.elf"),
            (PID, 49, 5, "full+0x5 jit-5000007-0-1.elf"),
            (PID, 70, 6, "last+0x6 jit-5000007-0-2.elf"),
        ],
    );
}

#[test]
fn samples_taken_where_code_died_are_not_counted_as_named() {
    let dead = ExtendedCode { died: Some(30 * MS), ..code(20, CODE, "dead") };
    let (scene, mut recording) = begun(Jit::begun().extended(&dead));
    recording.sample(PID, CODE + 1, 25 * MS).sample(PID, CODE + 2, 3000 * MS);
    let injected = scene.inject(&recording, &[]);
    assert_eq!(injected.counts(), (1, 1), "named and unnamed: {}", injected.said());
}

#[test]
fn either_line_table_can_be_shown_and_inlined_calls_with_the_source() {
    let line = |offset, file: &'static [u8], line| LineEntry {
        address: CODE + offset,
        file,
        line,
        column: 1,
    };
    let bytes = [0x90; 0x40];
    let jit = Jit::begun().extended(&ExtendedCode {
        bytes: Some(&bytes),
        lines: &[line(0, b"/src/app.js", 5), line(8, b"/src/lib.js", 70)],
        ir_lines: &[line(0, b"/ir/outer.ir", 1), line(8, b"/ir/outer.ir", 2)],
        inlined: &[Inlined {
            name: b"callee",
            file: b"/src/app.js",
            line: 6,
            column: 2,
            ranges: std::iter::once(CODE + 8..CODE + 0x10).collect(),
            ..Inlined::default()
        }],
        ..code(20, CODE, "outer")
    });
    let (scene, mut recording) = begun(jit);
    recording.sample(PID, CODE + 1, 25 * MS).sample(PID, CODE + 9, 26 * MS);
    scene.inject(&recording, &[]).clean();
    assert_eq!(scene.source_lines(), ["25 app.js:5", "26 lib.js:70"]);
    let image = "out.data.jit/jit-5000007-0.elf";
    let inlined = format!("addr2line -f -i -s -e {image} {:#x}", 0x1008 + CODE % 0x1000);
    assert_eq!(scene.run(&inlined), "callee\nlib.js:70\nouter\napp.js:6\n");

    scene.inject(&recording, &["--lines", "ir", "--force"]).clean();
    assert_eq!(scene.source_lines(), ["25 outer.ir:1", "26 outer.ir:2"]);
    assert_eq!(scene.run(&inlined), "outer\nouter.ir:2\n");
}

#[test]
fn what_a_log_had_no_room_for_is_told() {
    let (scene, mut recording) = begun(Jit::begun());
    recording.sample(PID, CODE + 1, 25 * MS);
    let jit = Jit::begun().extended(&code(20, CODE, "f"));
    let mut writer = jitdump::Writer::append(jit.bytes(), jitdump::Endian::Little);
    let left_out = jitdump::extension::LeftOut { count: 3, first: 21 * MS, last: 22 * MS };
    writer.left_out(23 * MS, &left_out).unwrap();
    scene.write(DUMP, writer.sink());
    let warnings = scene.inject(&recording, &[]).warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("3 codes are missing"), "{warnings:?}");
}
