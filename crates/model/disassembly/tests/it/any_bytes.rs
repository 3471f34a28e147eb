//! Any bytes are decoded, to the end and without gaps.

use disassembly::{Assembly, Syntax, disassemble};
use profile::{CodeId, CodeSource, Listing, Source};
use proptest::prelude::*;

/// Knows a name for each address of a page.
struct Names;

impl CodeSource for Names {
    fn listing(&mut self, _: CodeId) -> Option<Listing> {
        None
    }

    fn name_at(&mut self, _: CodeId, address: u64) -> Option<(Vec<u8>, u64)> {
        (0x5000..0x6000).contains(&address).then(|| (b"named".to_vec(), address - 0x5000))
    }

    fn source(&mut self, _: &[u8]) -> Option<Source> {
        None
    }
}

fn assembly(bytes: &[u8], address: u64, syntax: Syntax) -> Assembly {
    let listing = Listing { address, machine: 62, bytes: bytes.to_vec(), lines: Vec::new() };
    Assembly::of(CodeId(0), &listing, &mut Names, syntax).expect("x86-64")
}

fn texts(assembly: &Assembly) -> Vec<&str> {
    assembly.lines.iter().map(|line| line.text.as_str()).collect()
}

proptest! {
    #[test]
    fn nothing_is_left_out(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        machine in prop::sample::select(vec![3_u16, 62, 183]),
        address: u64,
        is_att: bool,
    ) {
        let syntax = if is_att { Syntax::Att } else { Syntax::Intel };
        let mut end = 0;
        for instruction in disassemble(machine, address, &bytes, syntax).expect("a machine") {
            prop_assert_eq!(instruction.offset, end);
            prop_assert!(instruction.length > 0 && !instruction.text.is_empty());
            end += u64::from(instruction.length);
            if let Some(place) = instruction.reference.and_then(|reference| reference.place) {
                prop_assert!(instruction.text.get(place).is_some_and(|text| text.starts_with("0x")));
            }
        }
        prop_assert_eq!(end, bytes.len() as u64);
        let listing = Listing { address, machine, bytes, lines: Vec::new() };
        let assembly = Assembly::of(CodeId(0), &listing, &mut Names, syntax).expect("a machine");
        let mut labels = 0;
        for (place, line) in assembly.lines.iter().enumerate() {
            prop_assert_eq!(assembly.line_at(line.offset + line.length - 1), Some(place));
            if let Some(label) = line.label {
                labels += 1;
                prop_assert_eq!(label, labels);
            }
            if let Some(place) = &line.target_text {
                prop_assert!(line.text.get(place.clone()).is_some());
            }
            // What has a label is jumped to, and each jump within the code names a label.
            if let Some(target) = &line.target
                && line.text.get(line.target_text.clone().unwrap_or_default()).is_some_and(|text| text.starts_with('L'))
            {
                let place = assembly.line_at(target.inside.expect("inside")).expect("a line");
                prop_assert!(assembly.lines[place].label.is_some());
            }
        }
        prop_assert_eq!(assembly.line_at(listing.bytes.len() as u64), None);
    }
}

#[test]
fn targets_have_labels_and_names() {
    #[rustfmt::skip]
    let code = [
        0x48, 0xff, 0xc9,                               // 0  dec rcx
        0x75, 0xfb,                                     // 3  jne 0
        0xe8, 0xf6, 0x0f, 0, 0,                         // 5  call 0x5000
        0xe8, 0xf5, 0x0f, 0, 0,                         // 10 call 0x5004
        0xe9, 0xec, 0x1f, 0, 0,                         // 15 jmp 0x6000, which has no name
        0x48, 0x8b, 0x05, 0x05, 0x10, 0, 0,             // 20 mov rax, [rip+..] = 0x5020
        0x48, 0x8b, 0x05, 0x06, 0x20, 0, 0,             // 27 mov rax, [rip+..] = 0x6028
        0x49, 0xba, 0x10, 0x50, 0, 0, 0, 0, 0, 0,       // 34 mov r10, 0x5010
        0x49, 0xba, 0x10, 0x70, 0, 0, 0, 0, 0, 0,       // 44 mov r10, 0x7010
        0xeb, 0xfd,                                     // 54 jmp 53, into the instruction before
        0x06,                                           // 56 no instruction
        0xc3,                                           // 57 ret
    ];
    let assembly = assembly(&code, 0x4000, Syntax::Intel);
    assert_eq!(
        texts(&assembly),
        [
            "dec     rcx",
            "jne     L1",
            "call    named",
            "call    named+0x4",
            "jmp     0x6000",
            "mov     rax, qword ptr [rip+0x1005]  # named+0x20",
            "mov     rax, qword ptr [rip+0x2006]  # 0x6028",
            "mov     r10, 0x5010  # named+0x10",
            "mov     r10, 0x7010",
            "jmp     L2+0x9",
            ".byte   0x06",
            "ret",
        ]
    );
    let labels: Vec<_> = assembly.lines.iter().map(|line| line.label).collect();
    assert_eq!((labels[0], labels[8]), (Some(1), Some(2)));
    assert_eq!(labels.iter().flatten().count(), 2);
    assert_eq!(assembly.lines[2].target.as_ref().expect("a target").name, b"named");
    assert_eq!(assembly.lines[8].target, None);
}

#[test]
fn a_call_of_the_code_itself_has_its_name() {
    let assembly = assembly(&[0xe8, 0xfb, 0xff, 0xff, 0xff], 0x5000, Syntax::Att);
    assert_eq!(texts(&assembly), ["call    named"]);
}

#[test]
fn other_machines_are_refused() {
    assert!(disassemble(243, 0, &[0x13, 0, 0, 0], Syntax::Intel).is_none());
}
