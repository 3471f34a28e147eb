//! The usual prologues, instruction by instruction.

use crate::common::{MACHINES, State, by_rows, entry, states_behind_code as states};
use unwind_info::{Machine, Row, Unwind, behind_code, fde};

fn state(cfa: (u16, i64), saved: &[(u16, i64)]) -> State {
    State { cfa, saved: saved.iter().copied().collect(), signed: false }
}

#[test]
fn x86_64() {
    let called = entry(Machine::X86_64);
    let pushed = state((7, 16), &[(6, -16), (16, -8)]);
    let set = state((6, 16), &[(6, -16), (16, -8)]);
    let found = states(Machine::X86_64, 6, &Unwind::FRAME_POINTER);
    assert_eq!(found, [&called, &pushed, &pushed, &pushed, &set, &set].map(Clone::clone));

    let found = states(Machine::X86_64, 10, &Unwind::FRAME_POINTER_BEHIND_LANDING);
    assert_eq!(found[..5], [(); 5].map(|()| called.clone()));
    assert_eq!(found[5..8], [(); 3].map(|()| pushed.clone()));
    assert_eq!(found[8..], [(); 2].map(|()| set.clone()));

    let found = states(Machine::X86_64, 3, &Unwind::FramePointerAlways { signed: false });
    assert_eq!(found, [&set, &set, &set].map(Clone::clone));
}

#[test]
fn aarch64() {
    let called = entry(Machine::Aarch64);
    let stored = state((31, 16), &[(29, -16), (30, -8)]);
    let set = state((29, 16), &[(29, -16), (30, -8)]);
    let found = states(Machine::Aarch64, 16, &Unwind::FRAME_POINTER);
    assert_eq!(found, [&called, &stored, &set, &set].map(Clone::clone));
    let found = states(Machine::Aarch64, 16, &Unwind::FRAME_POINTER_BEHIND_LANDING);
    assert_eq!(found, [&called, &called, &stored, &set].map(Clone::clone));

    let signed = |state: &State| State { signed: true, ..state.clone() };
    let unwind = Unwind::FramePointer { prologue: 4, signed: true };
    let found = states(Machine::Aarch64, 16, &unwind);
    assert_eq!(found, [called.clone(), signed(&called), signed(&stored), signed(&set)]);
    let found = states(Machine::Aarch64, 4, &Unwind::FramePointerAlways { signed: true });
    assert_eq!(found, [signed(&set)]);
}

/// Code may end before its prologue does, and the prepared bytes are the same as those from rows.
#[test]
fn the_precomputed_entry_equals_the_encoded_rows() {
    for machine in MACHINES {
        let unit = machine.code_alignment();
        let [saved, set]: [&[(u16, i32)]; 2] = match machine {
            Machine::X86_64 => [&[(6, -16)]; 2],
            _ => [&[(29, -16), (30, -8)]; 2],
        };
        let lengths = if machine == Machine::X86_64 { (1, 4) } else { (4, 8) };
        for prologue in (0..80).chain([254, 255, 256, 65_535]).map(|units| units * unit) {
            let rows = [
                Row::new(prologue + lengths.0, machine.stack_pointer(), 16).saved(saved),
                Row::new(prologue + lengths.1, machine.frame_pointer(), 16).saved(set),
            ];
            for size in (1..prologue / unit + 8).map(|units| units * unit).rev().take(9) {
                let within: Vec<_> = rows.iter().copied().filter(|row| row.offset < size).collect();
                let encode = |unwind| {
                    let mut out = Vec::new();
                    fde(machine, 4, -4, size.into(), &unwind, &mut out).unwrap();
                    out
                };
                let pointer = encode(Unwind::FramePointer { prologue, signed: false });
                assert_eq!(pointer, encode(Unwind::Rows(&within)), "{machine:?} {prologue} {size}");
            }
            let size = u64::from(prologue) + 16;
            if size < 200 {
                let unwind = Unwind::FramePointer { prologue, signed: false };
                let offsets = (0..size as u32).step_by(unit as usize);
                let model: Vec<_> = offsets.map(|at| by_rows(machine, &rows, at)).collect();
                assert_eq!(states(machine, size, &unwind), model);
            }
        }
    }
}

/// Registers that the code saves itself have a row of their own.
#[test]
fn saved_registers_equal_the_encoded_rows() {
    for machine in MACHINES {
        let (unit, lengths) = (
            machine.code_alignment(),
            match machine {
                Machine::X86_64 => (1, 4),
                _ => (4, 8),
            },
        );
        let [usual, more]: [&[(u16, i32)]; 2] = match machine {
            Machine::X86_64 => [&[(6, -16)], &[(3, -24), (12, -32)]],
            _ => [&[(29, -16), (30, -8)], &[(19, -24), (20, -32)]],
        };
        let all = [usual, more].concat();
        for (prologue, saved_from) in [(0, 8 * unit), (4, 4 + 8 * unit), (4, 60)] {
            let rows = [
                Row::new(prologue + lengths.0, machine.stack_pointer(), 16).saved(usual),
                Row::new(prologue + lengths.1, machine.frame_pointer(), 16).saved(usual),
                Row::new(saved_from, machine.frame_pointer(), 16).saved(&all),
            ];
            let saving =
                Unwind::FramePointerSaving { prologue, signed: false, saved_from, saved: more };
            let mut tables = [Vec::new(), Vec::new()];
            for (out, unwind) in tables.iter_mut().zip([saving, Unwind::Rows(&rows)]) {
                behind_code(machine, 64, &unwind, out).unwrap();
            }
            assert_eq!(tables[0], tables[1], "{machine:?} {prologue} {saved_from}");
            let offsets = (0..64).step_by(unit as usize);
            let model: Vec<_> = offsets.map(|at| by_rows(machine, &rows, at)).collect();
            assert_eq!(states(machine, 64, &saving), model);
        }
        let within = Unwind::FramePointerSaving {
            prologue: 0,
            signed: false,
            saved_from: lengths.1,
            saved: more,
        };
        let refused = behind_code(machine, 64, &within, &mut Vec::new());
        assert_eq!(refused, Err(unwind_info::Error::RowOrder { row: 3 }), "{machine:?}");
    }
}

#[test]
fn aarch64_has_no_instruction_between_two() {
    let unwind = Unwind::FramePointer { prologue: 2, signed: false };
    let result = behind_code(Machine::Aarch64, 64, &unwind, &mut Vec::new());
    assert_eq!(result, Err(unwind_info::Error::Alignment { offset: 2 }));
}
