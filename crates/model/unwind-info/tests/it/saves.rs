//! Registers that a frame pointer without a list does not mention.

use gimli::{BaseAddresses, EhFrame, NativeEndian, Register, RegisterRule, UnwindSection};
use proptest::prelude::*;
use unwind_info::{Machine, Reader, Saves, Unwind, absolute_for, eh_frame_for};

const SIZE: u64 = 64;

/// A frame pointer with a list.
const SAVING: Unwind<'_> = Unwind::FramePointerSaving {
    prologue: 0,
    signed: false,
    saved_from: 12,
    saved: &[(3, -24), (12, -32)],
};

/// The registers that are undefined in the callers of the instruction at `offset`.
fn undefined(section: &[u8], at: u64, offset: u64) -> Vec<u16> {
    let mut frames = EhFrame::new(section, NativeEndian);
    frames.set_address_size(8);
    let bases = BaseAddresses::default().set_eh_frame(at);
    let mut context = gimli::UnwindContext::new();
    let address = at - SIZE + offset;
    let cie = EhFrame::cie_from_offset;
    let row = frames.unwind_info_for_address(&bases, &mut context, address, cie).expect("a row");
    let is_undefined =
        |register: &u16| matches!(row.register(Register(*register)), Some(RegisterRule::Undefined));
    (0..128).filter(is_undefined).collect()
}

#[test]
fn what_a_description_does_not_list_is_undefined_to_debuggers() {
    const AT: u64 = 0x7100_0000;
    let always = Unwind::FramePointerAlways { signed: false };
    let preserved: [(Machine, u64, Vec<u16>); 2] = [
        (Machine::X86_64, 4, vec![3, 12, 13, 14, 15]),
        (Machine::Aarch64, 8, (19..=28).chain(72..=79).collect()),
    ];
    for (machine, prologue, preserved) in preserved {
        let landing = Unwind::FRAME_POINTER_BEHIND_LANDING;
        for (unwind, from) in [
            (Unwind::FRAME_POINTER, Some(prologue)),
            (landing, Some(4 + prologue)),
            (always, Some(0)),
            (SAVING, None),
            (Unwind::Rows(&[]), None),
        ] {
            for reader in [Reader::Unwinder, Reader::Debugger] {
                let mut section = Vec::new();
                let distance = SIZE as i64;
                eh_frame_for(reader, machine, SIZE, distance, &unwind, &mut section).unwrap();
                let mut entries = Vec::new();
                absolute_for(reader, machine, AT - SIZE, SIZE, &unwind, &mut entries).unwrap();
                for offset in (0..SIZE).step_by(4) {
                    let is_unknown =
                        reader == Reader::Debugger && from.is_some_and(|from| offset >= from);
                    let expected: &[u16] = if is_unknown { &preserved } else { &[] };
                    let context = format!("{machine:?} {unwind:?} {reader:?} at {offset}");
                    assert_eq!(undefined(&section, AT, offset), expected, "{context}");
                    assert_eq!(undefined(&entries, AT, offset), expected, "{context}");
                }
            }
        }
    }
}

/// Registers, and where each is saved.
type List<'a> = &'a [(u16, i32)];

/// The registers that `body`, which follows a prologue, saves.
fn saved(machine: Machine, prologue: &[u8], body: &[u8]) -> Vec<(u16, i32)> {
    let code = [prologue, body].concat();
    let saves = Saves::find(machine, &code, &Unwind::FRAME_POINTER);
    let landing = [&[0x90; 4], code.as_slice()].concat();
    let unwind = Unwind::FRAME_POINTER_BEHIND_LANDING;
    assert_eq!(Saves::find(machine, &landing, &unwind).list(), saves.list(), "{body:x?}");
    assert!(Saves::find(machine, &code, &SAVING).list().is_empty());
    saves.list().to_vec()
}

#[test]
fn registers_that_a_prologue_saves_are_found() {
    let x86_64: [(&[u8], List<'_>); 16] = [
        (b"\x53", &[(3, -24)]),                             // push rbx
        (b"\x50\x41\x54\x53", &[(12, -32), (3, -40)]),      // push rax; push r12; push rbx
        (b"\x41\x57\x90\x53", &[(15, -24)]),                // push r15; nop; …
        (b"\x48\x83\xec\x20\x48\x89\x5d\xf8", &[(3, -24)]), // sub rsp, 32; mov [rbp - 8], rbx
        // sub rsp, 4096; mov [rbp - 16], r13; push rbx
        (b"\x48\x81\xec\0\x10\0\0\x4c\x89\x6d\xf0\x53", &[(13, -32), (3, -4120)]),
        (b"\x4c\x89\xb5\0\xff\xff\xff", &[(14, -272)]), // mov [rbp - 256], r14
        (b"\x48\x89\x5d\x10", &[(3, 0)]),               // mov [rbp + 16], rbx: room of the caller
        // sub rsp, 16; mov [rsp], rbx; mov [rsp + 8], r12
        (b"\x48\x83\xec\x10\x48\x89\x1c\x24\x4c\x89\x64\x24\x08", &[(3, -32), (12, -24)]),
        (b"\x48\x89\x7d\xf8\x4c\x89\x65\xf0", &[(12, -32)]), // mov [rbp - 8], rdi; …
        (b"\x53\x53", &[(3, -24)]),                          // push rbx, twice
        (b"\x53\x48\x89\x3c\x24", &[]), // push rbx; mov [rsp], rdi: no longer there
        (b"\x48\x89\x5d\x08", &[]),     // mov [rbp + 8], rbx: the return address
        (b"\x48\x89\xd8\x53", &[]),     // mov rax, rbx: no store
        (b"\x90\x53", &[]),             // behind another instruction
        (b"\x41", &[]),
        (b"", &[]),
    ];
    for (body, expected) in x86_64 {
        let found = saved(Machine::X86_64, b"\x55\x48\x89\xe5", body);
        assert_eq!(found, expected, "{body:x?}");
    }
    let aarch64: [(&[u32], List<'_>); 7] = [
        (&[0xa901_53f3], &[(19, 0), (20, 8)]), // stp x19, x20, [sp, 16]
        (&[0xd100_83ff, 0xf900_07f5], &[(21, -40)]), // sub sp, sp, 32; str x21, [sp, 8]
        (&[0xf81f_0ff6], &[(22, -32)]),        // str x22, [sp, -16]!
        // stp x19, x20, [sp, -32]!; stp d8, d9, [sp, 16]
        (&[0xa9be_53f3, 0x6d01_27e8], &[(19, -48), (20, -40), (72, -32), (73, -24)]),
        (&[0xa93f_53b3], &[(19, -32), (20, -24)]), // stp x19, x20, [x29, -16]
        (&[0xf900_07e0], &[]),                     // str x0, [sp, 8]
        (&[0xf900_0413], &[]),                     // str x19, [x0, 8]
    ];
    for (body, expected) in aarch64 {
        let body: Vec<u8> = body.iter().copied().flat_map(u32::to_le_bytes).collect();
        let found = saved(Machine::Aarch64, b"\xfd\x7b\xbf\xa9\xfd\x03\x00\x91", &body);
        assert_eq!(found, expected, "{body:x?}");
    }
}

/// The list that is found says the same as one that is given.
#[test]
fn a_description_is_completed() {
    let code = b"\x55\x48\x89\xe5\x53\x41\x54\x31\xdb\xc3"; // …; push rbx; push r12; xor ebx, ebx
    let saves = Saves::find(Machine::X86_64, code, &Unwind::FRAME_POINTER);
    let saved = &[(3, -24), (12, -32)];
    let expected = Unwind::FramePointerSaving { prologue: 0, signed: false, saved_from: 7, saved };
    assert_eq!(saves.complete(Unwind::FRAME_POINTER), expected);
    assert_eq!(saves.complete(SAVING), SAVING);
    let none = Saves::find(Machine::X86_64, &code[..4], &Unwind::FRAME_POINTER);
    assert_eq!(none.complete(Unwind::FRAME_POINTER), Unwind::FRAME_POINTER);
}

proptest! {
    /// What is found can always be encoded.
    #[test]
    fn any_bytes_are_searched(
        body in prop::collection::vec(any::<u8>(), 0..64),
        prologue in prop_oneof![0..80_u32, Just(u32::MAX)],
    ) {
        for (machine, start) in [
            (Machine::X86_64, &b"\x55\x48\x89\xe5"[..]),
            (Machine::Aarch64, b"\xfd\x7b\xbf\xa9\xfd\x03\x00\x91"),
        ] {
            let unwind = Unwind::FramePointer { prologue, signed: false };
            let _ = Saves::find(machine, &body, &unwind);
            let code = [start, &body].concat();
            let saves = Saves::find(machine, &code, &Unwind::FRAME_POINTER);
            let complete = saves.complete(Unwind::FRAME_POINTER);
            let size = code.len() as u64;
            prop_assert_eq!(unwind_info::absolute(machine, 0, size, &complete, &mut Vec::new()), Ok(()));
        }
    }
}
