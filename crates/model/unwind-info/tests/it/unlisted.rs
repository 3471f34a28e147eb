//! Registers that a frame pointer without a list does not mention.

use gimli::{BaseAddresses, EhFrame, NativeEndian, Register, RegisterRule, UnwindSection};
use proptest::prelude::*;
use unwind_info::{Machine, Reader, Unwind, absolute_for, eh_frame_for, unlisted_save};

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

#[test]
fn registers_that_a_prologue_saves_are_found() {
    const RBX: Option<u16> = Some(3);
    let x86_64: [(&[u8], Option<u16>); 12] = [
        (b"\x53", RBX),                                        // push rbx
        (b"\x50\x41\x54", Some(12)),                           // push rax; push r12
        (b"\x41\x57", Some(15)),                               // push r15
        (b"\x48\x83\xec\x20\x48\x89\x5d\xf8", RBX),            // sub rsp, 32; mov [rbp - 8], rbx
        (b"\x48\x81\xec\0\x10\0\0\x4c\x89\x6d\xf0", Some(13)), // …, 4096; mov [rbp - 16], r13
        (b"\x4c\x89\xb5\0\xff\xff\xff", Some(14)),             // mov [rbp - 256], r14
        (b"\x48\x89\x1c\x24", RBX),                            // mov [rsp], rbx
        (b"\x48\x89\x7d\xf8\x4c\x89\x64\x24\x08", Some(12)), // mov [rbp - 8], rdi; mov [rsp + 8], r12
        (b"\x48\x89\xd8\x53", None),                         // mov rax, rbx: no store
        (b"\x90\x53", None),                                 // behind another instruction
        (b"\x41", None),
        (b"", None),
    ];
    for (body, expected) in x86_64 {
        let code = [b"\x55\x48\x89\xe5", body].concat();
        let found = unlisted_save(Machine::X86_64, &code, &Unwind::FRAME_POINTER);
        assert_eq!(found, expected, "{body:x?}");
        let landing = [b"\xf3\x0f\x1e\xfa", code.as_slice()].concat();
        let unwind = Unwind::FRAME_POINTER_BEHIND_LANDING;
        assert_eq!(unlisted_save(Machine::X86_64, &landing, &unwind), expected, "{body:x?}");
        assert_eq!(unlisted_save(Machine::X86_64, &code, &SAVING), None);
    }
    let aarch64: [(&[u32], Option<u16>); 6] = [
        (&[0xa901_53f3], Some(19)),              // stp x19, x20, [sp, 16]
        (&[0xd100_83ff, 0xf900_07f5], Some(21)), // sub sp, sp, 32; str x21, [sp, 8]
        (&[0xf81f_0ff6], Some(22)),              // str x22, [sp, -16]!
        (&[0x6d01_27e8], Some(72)),              // stp d8, d9, [sp, 16]
        (&[0xf900_07e0], None),                  // str x0, [sp, 8]
        (&[0xf900_0413], None),                  // str x19, [x0, 8]
    ];
    for (body, expected) in aarch64 {
        let words = [&[0xa9bf_7bfd, 0x9100_03fd], body].concat();
        let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        let found = unlisted_save(Machine::Aarch64, &code, &Unwind::FRAME_POINTER);
        assert_eq!(found, expected, "{body:x?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_searched(
        body in prop::collection::vec(any::<u8>(), 0..64),
        prologue in prop_oneof![0..80_u32, Just(u32::MAX)],
    ) {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let unwind = Unwind::FramePointer { prologue, signed: false };
            let _ = unlisted_save(machine, &body, &unwind);
        }
    }
}
