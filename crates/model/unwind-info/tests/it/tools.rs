//! How common tools interpret the tables.
#![cfg(unix)]

use std::fs;
use std::process::Command;

use unwind_info::{Machine, Row, Unwind, behind_code, fde, offset_behind};

const CODE: u64 = 0x7f00_0000_0000;

fn elf(machine: Machine, code_size: u64, unwind: &Unwind<'_>) -> Vec<u8> {
    let mut tables = Vec::new();
    let sizes = behind_code(machine, code_size, unwind, &mut tables).unwrap();
    let (frames, header) = tables.split_at(sizes.eh_frame);
    file(machine, code_size, frames, header)
}

/// An object file of the code (without its bytes) and the tables behind it.
fn file(machine: Machine, code_size: u64, frames: &[u8], header: &[u8]) -> Vec<u8> {
    let tables = [frames, header].concat();
    let frames_at = CODE + offset_behind(code_size).unwrap();
    let names = b"\0.text\0.eh_frame\0.eh_frame_hdr\0.shstrtab\0";
    let name = |text: &str| {
        let at =
            names.windows(text.len() + 1).position(|name| name == format!("{text}\0").as_bytes());
        at.unwrap() as u64
    };
    let tables_at = 64;
    let names_at = tables_at + tables.len() as u64;
    let sections_at = (names_at + names.len() as u64).next_multiple_of(8);
    let (frames_size, header_size) = (frames.len() as u64, header.len() as u64);
    let header_at = frames_at + frames_size;
    // name, type, flags, address, offset, size, alignment
    let sections = [
        [0; 7],
        [name(".text"), 8, 6, CODE, tables_at, code_size, 8],
        [name(".eh_frame"), 1, 2, frames_at, tables_at, frames_size, 4],
        [name(".eh_frame_hdr"), 1, 2, header_at, tables_at + frames_size, header_size, 4],
        [name(".shstrtab"), 3, 0, 0, names_at, names.len() as u64, 1],
    ];

    let e_machine = if machine == Machine::X86_64 { 62_u16 } else { 183 };
    assert_eq!(Machine::from_elf(e_machine.into()), Some(machine));
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([2_u16, e_machine].into_iter().flat_map(u16::to_le_bytes));
    out.extend(1_u32.to_le_bytes());
    out.extend([0, 0, sections_at].into_iter().flat_map(u64::to_le_bytes));
    out.extend(0_u32.to_le_bytes());
    let counts = [64, 0, 0, 64, sections.len() as u16, sections.len() as u16 - 1];
    out.extend(counts.into_iter().flat_map(u16::to_le_bytes));
    out.extend(&tables);
    out.extend(names);
    out.resize(sections_at as usize, 0);
    for [name, kind, flags, address, offset, size, alignment] in sections {
        out.extend([name as u32, kind as u32].into_iter().flat_map(u32::to_le_bytes));
        out.extend([flags, address, offset, size].into_iter().flat_map(u64::to_le_bytes));
        out.extend([0; 8]);
        out.extend([alignment, 0].into_iter().flat_map(u64::to_le_bytes));
    }
    out
}

/// Runs a tool on the object file; returns its output without redundant spaces.
fn run(tool: &str, arguments: &[&str], elf: &[u8]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("code.o");
    fs::write(&path, elf).unwrap();
    let output = Command::new(tool).args(arguments).arg(&path).env("LC_ALL", "C").output();
    let output = output.unwrap_or_else(|error| {
        panic!("cannot run {tool}: {error}. scripts/setup.sh installs what the tests need")
    });
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(&String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{tool} fails:\n{text}");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// readelf's interpretation of the frames, without the heading of the section.
fn interpreted(machine: Machine, code_size: u64, unwind: &Unwind<'_>) -> Vec<String> {
    let elf = elf(machine, code_size, unwind);
    let mut lines = run("readelf", &["--debug-dump=frames-interp"], &elf);
    assert_eq!(lines.remove(0), "Contents of the .eh_frame section:");
    lines
}

#[test]
fn readelf_shows_a_frame_pointer_on_x86_64() {
    assert_eq!(
        interpreted(Machine::X86_64, 30, &Unwind::FRAME_POINTER_BEHIND_LANDING),
        [
            "00000000 0000000000000014 00000000 CIE \"zR\" cf=1 df=-8 ra=16",
            "LOC CFA ra",
            "0000000000000000 rsp+8 c-8",
            "00000018 0000000000000018 0000001c FDE cie=00000000 pc=00007f0000000000..00007f000000001e",
            "LOC CFA rbp ra",
            "00007f0000000000 rsp+8 u c-8",
            "00007f0000000005 rsp+16 c-16 c-8",
            "00007f0000000008 rbp+16 c-16 c-8",
            "00000034 ZERO terminator",
        ]
    );
}

#[test]
fn readelf_shows_a_signed_frame_pointer_on_aarch64() {
    let unwind = Unwind::FramePointer { prologue: 4, signed: true };
    assert_eq!(
        interpreted(Machine::Aarch64, 32, &unwind),
        [
            "00000000 0000000000000010 00000000 CIE \"zR\" cf=4 df=-8 ra=30",
            "LOC CFA",
            "0000000000000000 sp+0",
            "00000014 000000000000001c 00000018 FDE cie=00000000 pc=00007f0000000000..00007f0000000020",
            "LOC CFA x29 ra",
            "00007f0000000000 sp+0 u u",
            "00007f0000000004 sp+0 u u",
            "00007f0000000008 sp+16 c-16 c-8",
            "00007f000000000c x29+16 c-16 c-8",
            "00000034 ZERO terminator",
        ]
    );
    let raw = run("readelf", &["--debug-dump=frames"], &elf(Machine::Aarch64, 32, &unwind));
    let signs = raw.iter().filter(|line| *line == "DW_CFA_AARCH64_negate_ra_state");
    assert_eq!(signs.count(), 1, "{raw:#?}");
}

#[test]
fn readelf_shows_rows() {
    let rows = [
        Row::new(4, 7, 4096),
        Row::new(300, 6, 16).saved(&[(3, -24), (33, -4096)]),
        Row::new(70_000, 7, 8),
        Row::new(70_001, 6, -16),
    ];
    assert_eq!(
        interpreted(Machine::X86_64, 80_000, &Unwind::Rows(&rows))[3..],
        [
            "00000018 000000000000002c 0000001c FDE cie=00000000 pc=00007f0000000000..00007f0000013880",
            "LOC CFA rbx ra st0",
            "00007f0000000000 rsp+8 u c-8 u",
            "00007f0000000004 rsp+4096 u c-8 u",
            "00007f000000012c rbp+16 c-24 c-8 c-4096",
            "00007f0000011170 rsp+8 u c-8 u",
            "00007f0000011171 rbp-16 u c-8 u",
            "00000048 ZERO terminator",
        ]
    );
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    /// Key B: the CIE says so, and llvm-dwarfdump and readelf accept it.
    #[test]
    fn readelf_shows_key_b_on_aarch64() {
        let unwind = Unwind::FramePointer { prologue: 4, signed: true };
        let mut section = Vec::new();
        let encoded = unwind_info::eh_frame_key_b(32, 32, &unwind, &mut section).unwrap();
        assert_eq!((encoded.size, encoded.fde), (section.len(), 24));
        let ready = Unwind::EhFrame(&section);
        assert_eq!(
            interpreted(Machine::Aarch64, 32, &ready),
            [
                "00000000 0000000000000014 00000000 CIE \"zRB\" cf=4 df=-8 ra=30",
                "LOC CFA",
                "0000000000000000 sp+0",
                "00000018 000000000000001c 0000001c FDE cie=00000000 pc=00007f0000000000..00007f0000000020",
                "LOC CFA x29 ra",
                "00007f0000000000 sp+0 u u",
                "00007f0000000004 sp+0 u u",
                "00007f0000000008 sp+16 c-16 c-8",
                "00007f000000000c x29+16 c-16 c-8",
                "00000038 ZERO terminator",
            ]
        );
        let dumped = run("llvm-dwarfdump", &["--eh-frame"], &elf(Machine::Aarch64, 32, &ready));
        assert!(dumped.iter().any(|line| line == "Augmentation: \"zRB\""), "{dumped:#?}");
        // A ready section has its own CIE.
        let again = unwind_info::eh_frame_key_b(32, 32, &ready, &mut Vec::new());
        assert_eq!(again, Err(unwind_info::Error::ReadyAsEntry));
    }

    /// As distances, which the tool shows as they are in the file.
    #[test]
    fn eu_readelf_shows_the_search_table() {
        for (machine, fde) in [(Machine::X86_64, 24), (Machine::Aarch64, 20)] {
            let elf = elf(machine, 64, &Unwind::FRAME_POINTER);
            let lines = run("eu-readelf", &["--debug-dump=frame"], &elf);
            let at = lines.iter().position(|line| line.contains("'.eh_frame_hdr'")).unwrap();
            let size = fde + 32;
            assert_eq!(
                lines[at + 1..],
                [
                    "version: 1".to_owned(),
                    "eh_frame_ptr_enc: 0x1b (sdata4 pcrel)".to_owned(),
                    "fde_count_enc: 0x3 (udata4)".to_owned(),
                    "table_enc: 0x3b (sdata4 datarel)".to_owned(),
                    format!("eh_frame_ptr: {:#x} (offset: 0x40)", -size - 4_i64),
                    "fde_count: 1".to_owned(),
                    "Table:".to_owned(),
                    format!(
                        "{:#x} (offset: 0) -> {:#x} fde=[ {fde:x}]",
                        -64 - size as i32,
                        fde as i32 - size as i32
                    ),
                ],
                "{machine:?}"
            );
        }
    }

    /// A section of many codes, as debuggers need it.
    #[test]
    fn llvm_dwarfdump_and_readelf_read_many_entries() {
        let cie = Machine::X86_64.cie();
        let mut frames = cie.to_vec();
        for code in [-4096_i64, -64] {
            let at = frames.len();
            let (from_cie, to_code) = (at as u32, code - at as i64);
            fde(Machine::X86_64, from_cie, to_code, 64, &Unwind::FRAME_POINTER, &mut frames)
                .unwrap();
        }
        frames.extend([0; 4]);
        let ready = file(Machine::X86_64, 4096, &frames, &[0; 20]);
        let dumped = [
            ("readelf", "--debug-dump=frames", "00007f0000000000..00007f0000000040"),
            ("readelf", "--debug-dump=frames", "00007f0000000fc0..00007f0000001000"),
            ("llvm-dwarfdump", "--eh-frame", "7f0000000000...7f0000000040"),
            ("llvm-dwarfdump", "--eh-frame", "7f0000000fc0...7f0000001000"),
        ];
        for (tool, option, range) in dumped {
            let lines = run(tool, &[option], &ready);
            let range = format!("FDE cie=00000000 pc={range}");
            assert!(lines.iter().any(|line| line.ends_with(&range)), "{tool}: {lines:#?}");
        }
    }
}
