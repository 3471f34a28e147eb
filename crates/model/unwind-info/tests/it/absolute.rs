//! Entries with absolute addresses describe the same as those with relative ones, at any position.

use gimli::{BaseAddresses, CieOrFde, EhFrame, NativeEndian, UnwindContext, UnwindSection};
use unwind_info::{Error, Machine, Row, Unwind, absolute, eh_frame};

/// Address, end and unwind rows of the only FDE.
fn rows(section: &[u8], at: u64) -> Vec<String> {
    let mut frames = EhFrame::new(section, NativeEndian);
    frames.set_address_size(8);
    let bases = BaseAddresses::default().set_eh_frame(at);
    let mut entries = frames.entries(&bases);
    let mut rows = Vec::new();
    while let Some(entry) = entries.next().expect("entries") {
        let CieOrFde::Fde(fde) = entry else { continue };
        let fde = fde.parse(EhFrame::cie_from_offset).expect("an FDE");
        let mut context = UnwindContext::new();
        let mut table = fde.rows(&frames, &bases, &mut context).expect("rows");
        while let Some(row) = table.next_row().expect("a row") {
            rows.push(format!("{row:?}"));
        }
    }
    rows
}

#[test]
fn absolute_and_relative_addresses_describe_the_same_frames() {
    const ADDRESS: u64 = 0x7f12_3456_7000;
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let saved = [(machine.frame_pointer(), -16)];
        let own = [
            Row::new(4, machine.stack_pointer(), 48).saved(&saved),
            Row::new(200, machine.stack_pointer(), 0),
        ];
        for unwind in [
            Unwind::FRAME_POINTER,
            Unwind::FRAME_POINTER_BEHIND_LANDING,
            Unwind::FramePointerAlways { signed: false },
            Unwind::Rows(&own),
            Unwind::Rows(&[]),
        ] {
            let mut relative = Vec::new();
            eh_frame(machine, 0x100, 0x100, &unwind, &mut relative).expect("tables");
            let mut whole = vec![0xaa; 3];
            absolute(machine, ADDRESS, 0x100, &unwind, &mut whole).expect("entries");
            let whole = &whole[3..];
            assert!(whole.len().is_multiple_of(8));
            let expected = rows(&relative, ADDRESS + 0x100);
            assert!(!expected.is_empty());
            for at in [0, 0x1000] {
                assert_eq!(rows(whole, at), expected, "{machine:?} {unwind:?}");
            }
            let twice = [whole, whole].concat();
            assert_eq!(rows(&twice, 0), [expected.clone(), expected].concat());
        }
    }
}

#[test]
fn a_failed_encoding_writes_nothing() {
    let mut out = vec![1, 2];
    let outside = [Row::new(8, 7, 8)];
    let refused = absolute(Machine::X86_64, 0x1000, 8, &Unwind::Rows(&outside), &mut out);
    assert_eq!(refused, Err(Error::RowOutside { row: 0 }));
    let ready = absolute(Machine::X86_64, 0x1000, 8, &Unwind::EhFrame(&[]), &mut out);
    assert_eq!(ready, Err(Error::ReadyAsEntry));
    assert_eq!(out, [1, 2]);
}
