//! Rows in, rows out: gimli's evaluation of the output agrees with a naive model.

use crate::common::{MACHINES, Placed, by_rows, entry, states_behind_code};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use unwind_info::{Error, Machine, Row, Unwind, behind_code, eh_frame, eh_frame_hdr, fde};

#[derive(Debug, Clone)]
struct OwnedRow {
    offset: u32,
    cfa: (u16, i32),
    saved: Vec<(u16, i32)>,
    signed: bool,
}

fn borrow(rows: &[OwnedRow]) -> Vec<Row<'_>> {
    rows.iter()
        .map(|row| Row::new(row.offset, row.cfa.0, row.cfa.1).saved(&row.saved).signed(row.signed))
        .collect()
}

/// A multiple of 8, usually small.
fn place() -> impl Strategy<Value = i32> {
    prop_oneof![
        6 => (-40..0).prop_map(|n| n * 8),
        1 => (0..5).prop_map(|n| n * 8),
        1 => (i32::MIN / 8..=i32::MAX / 8).prop_map(|n| n * 8),
    ]
}

fn cfa(machine: Machine) -> impl Strategy<Value = (u16, i32)> {
    let registers = [machine.stack_pointer(), machine.frame_pointer(), 14];
    let offset = prop_oneof![
        6 => (0..300).prop_map(|n: i32| n),
        1 => 0..=i32::MAX,
        1 => place(),
    ];
    (proptest::sample::select(registers.to_vec()), offset)
}

fn row(machine: Machine) -> impl Strategy<Value = OwnedRow> {
    // few registers, so that neighbours share some
    let register = prop_oneof![4 => 0..20_u16, 2 => 60..68_u16, 1 => 0..128_u16];
    let saved = btree_map(register, place(), 0..8)
        .prop_map(|saved| saved.into_iter().filter(|(register, _)| *register != 34).collect())
        .prop_shuffle();
    let signed =
        if machine == Machine::Aarch64 { any::<bool>().boxed() } else { Just(false).boxed() };
    (cfa(machine), saved, signed).prop_map(|(cfa, saved, signed)| OwnedRow {
        offset: 0,
        cfa,
        saved,
        signed,
    })
}

/// A machine, the code's size, and rows within it.
fn described() -> impl Strategy<Value = (Machine, u64, Vec<OwnedRow>)> {
    let sizes = prop_oneof![8 => 1..300_u32, 2 => 1..70_000_u32, 1 => 1..0x1800_0000_u32];
    (proptest::sample::select(MACHINES.to_vec()), sizes).prop_flat_map(|(machine, units)| {
        let offsets = btree_set(0..units, 0..12.min(units as usize + 1));
        (offsets, vec(row(machine), 12)).prop_map(move |(offsets, mut rows)| {
            rows.truncate(offsets.len());
            for (row, offset) in rows.iter_mut().zip(&offsets) {
                row.offset = offset * machine.code_alignment();
            }
            // a row that changes nothing
            if rows.len() > 2 {
                rows[2] = OwnedRow { offset: rows[2].offset, ..rows[1].clone() };
            }
            (machine, u64::from(units * machine.code_alignment()), rows)
        })
    })
}

/// The offsets at which something may go wrong.
fn edges(machine: Machine, size: u64, rows: &[Row<'_>]) -> Vec<u32> {
    let unit = machine.code_alignment();
    let around = |at: u32| [at.saturating_sub(1), at, at + 1, at + unit];
    let mut edges: Vec<u32> = rows.iter().flat_map(|row| around(row.offset)).collect();
    edges.extend([0, size as u32 - 1]);
    edges.retain(|edge| u64::from(*edge) < size);
    edges
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn gimli_reads_the_same_rows(
        (machine, size, rows) in described(),
        code in (0x1_0000_0000..0x7fff_0000_0000_u64),
        between in -0x2000_0000..0x1000_0000_i64,
        gap in -10_000..10_000_i64,
    ) {
        let rows = borrow(&rows);
        // behind the code's end or below its start, so that the table describes only the code
        let to_frame = if between < 0 { between } else { size as i64 + between };
        let mut out = vec![0xee; 3];
        let frame = eh_frame(machine, size, to_frame, &Unwind::Rows(&rows), &mut out).unwrap();
        prop_assert_eq!(out.len(), 3 + frame.size);
        prop_assert_eq!(&out[..3], [0xee; 3]);
        prop_assert_eq!(frame.size % 4, 0);
        let to_header = to_frame + gap;
        let header = eh_frame_hdr(to_header, to_frame, frame.fde).unwrap();
        let placed = Placed {
            machine,
            code,
            code_size: size,
            frames: &out[3..],
            frames_at: code.wrapping_add_signed(to_frame),
            header: &header,
            header_at: code.wrapping_add_signed(to_header),
        };
        for offset in edges(machine, size, &rows) {
            prop_assert_eq!(placed.at(offset.into()), Some(by_rows(machine, &rows, offset)));
        }
        prop_assert_eq!(placed.at(-1), None);
        prop_assert_eq!(placed.at(size as i64), None);
    }

    #[test]
    fn any_input_is_encoded_or_refused_without_output(
        machine in proptest::sample::select(MACHINES.to_vec()),
        size in prop_oneof![0..200_u64, any::<u64>()],
        distance in any::<i64>(),
        rows in vec((0..200_u32, any::<u16>(), any::<i32>(), vec((0..140_u16, any::<i32>()), 0..3),
            any::<bool>()), 0..5),
        bytes in vec(0..12_u8, 0..60),
        prologue in prop_oneof![0..80_u32, any::<u32>()],
        signed in any::<bool>(),
    ) {
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(offset, register, at, saved, signed)| {
                OwnedRow { offset, cfa: (register, at), saved, signed }
            })
            .collect();
        let rows = borrow(&rows);
        for unwind in [
            Unwind::Rows(&rows),
            Unwind::EhFrame(&bytes),
            Unwind::FramePointer { prologue, signed },
            Unwind::FramePointerSaving {
                prologue,
                signed,
                saved_from: prologue.saturating_add(8),
                saved: rows.first().map_or(&[], |row| row.saved),
            },
            Unwind::FramePointerAlways { signed },
        ] {
            let mut out = vec![1, 2, 3];
            if behind_code(machine, size, &unwind, &mut out).is_err() {
                prop_assert_eq!(&out[..], [1, 2, 3]);
            }
            out.truncate(3);
            if eh_frame(machine, size, distance, &unwind, &mut out).is_err() {
                prop_assert_eq!(&out[..], [1, 2, 3]);
            }
            out.truncate(3);
            if fde(machine, u32::MAX, distance, size, &unwind, &mut out).is_err() {
                prop_assert_eq!(&out[..], [1, 2, 3]);
            }
            let _ = eh_frame_hdr(distance, !distance, prologue);
        }
    }

    #[test]
    fn a_ready_section_is_copied_unchanged((machine, size, rows) in described(), cut in any::<bool>()) {
        let rows = borrow(&rows);
        let mut made = Vec::new();
        let tables = behind_code(machine, size, &Unwind::Rows(&rows), &mut made).unwrap();
        let end = tables.eh_frame - if cut { 4 } else { 0 };
        let mut again = Vec::new();
        let ready = Unwind::EhFrame(&made[..end]);
        prop_assert_eq!(behind_code(machine, size, &ready, &mut again), Ok(tables));
        prop_assert_eq!(made, again);
    }
}

#[test]
fn tables_follow_code_of_any_size() {
    for machine in MACHINES {
        for size in (1..40_u64).map(|units| units * u64::from(machine.code_alignment())) {
            let states = states_behind_code(machine, size, &Unwind::Rows(&[]));
            assert!(states.iter().all(|state| *state == entry(machine)));
        }
    }
}

#[test]
fn only_changes_are_written() {
    let saved = [(6, -16), (3, -24)];
    let row = |offset, cfa_register, cfa_offset, saved| {
        Row::new(offset, cfa_register, cfa_offset).saved(saved)
    };
    let rows = [
        row(0, 7, 8, &[][..]),
        row(1, 7, 16, &saved[..1]),
        row(4, 6, 16, &saved[..1]),
        row(5, 6, 16, &saved[..1]),
        row(68, 6, 16, &saved),
        row(300, 6, 16, &[(3, -24), (6, -16), (16, -8)]),
        row(70_000, 7, 8, &[]),
        row(16_000_000, 7, -8, &[(16, 8), (70, -8)]),
    ];
    let mut out = Vec::new();
    fde(Machine::X86_64, 24, -24, 20_000_000, &Unwind::Rows(&rows), &mut out).unwrap();
    let expected = [
        &[0x41, 0x0e, 16, 0x86, 2][..],
        &[0x43, 0x0d, 6],
        &[0x02, 64, 0x83, 3],
        &[0x04, 0x2c, 0x11, 0x01, 0x00, 0x0c, 7, 8, 0xc3, 0xc6],
        &[0x04, 0x90, 0x12, 0xf3, 0x00, 0x13, 1, 0x11, 16, 0x7f, 0x05, 70, 1],
    ]
    .concat();
    assert_eq!(out[17..17 + expected.len()], expected);
    assert!(out[17 + expected.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn unsupported_rows_are_refused() {
    use Machine::{Aarch64, X86_64};
    let row = Row::new(4, 7, 16);
    let cases: [(Machine, &[Row<'_>], Error); 10] = [
        (X86_64, &[row, row], Error::RowOrder { row: 1 }),
        (X86_64, &[Row::new(8, 7, 16)], Error::RowOutside { row: 0 }),
        (Aarch64, &[Row::new(2, 7, 16)], Error::Alignment { offset: 2 }),
        (X86_64, &[Row::new(4, 128, 16)], Error::Register { row: 0, register: 128 }),
        (X86_64, &[row.saved(&[(3, -16), (200, -24)])], Error::Register { row: 0, register: 200 }),
        (Aarch64, &[row.saved(&[(34, -8)])], Error::Register { row: 0, register: 34 }),
        (X86_64, &[row.saved(&[(3, -16), (3, -16)])], Error::SavedTwice { row: 0, register: 3 }),
        (X86_64, &[row.saved(&[(3, -12)])], Error::Unit { row: 0 }),
        (X86_64, &[Row::new(4, 7, -4)], Error::Unit { row: 0 }),
        (X86_64, &[row.signed(true)], Error::Signed),
    ];
    let ready = Unwind::EhFrame(X86_64.cie());
    let rows = cases.map(|(machine, rows, error)| (machine, 8, Unwind::Rows(rows), error));
    let others = [
        (X86_64, 8, Unwind::FramePointerAlways { signed: true }, Error::Signed),
        (X86_64, 1 << 32, Unwind::FRAME_POINTER, Error::TooFar),
        (X86_64, 0x8000_0000, Unwind::FRAME_POINTER, Error::TooFar),
        (X86_64, u64::MAX, Unwind::FRAME_POINTER, Error::TooFar),
        (X86_64, 8, Unwind::EhFrame(&[]), Error::Ready),
        (X86_64, 8, ready, Error::Ready),
    ];
    for (machine, size, unwind, expected) in rows.into_iter().chain(others) {
        let result = behind_code(machine, size, &unwind, &mut Vec::new());
        assert_eq!(result, Err(expected), "{machine:?} {size:#x} {unwind:?}");
    }
    assert_eq!(fde(X86_64, 24, 0, 8, &ready, &mut Vec::new()), Err(Error::ReadyAsEntry));
}
