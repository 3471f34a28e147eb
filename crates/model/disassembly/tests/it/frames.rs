//! Frames that were followed, compared with the unwind info that the compiler wrote for the same code: that of this program.

use disassembly::Frames;
use gimli::{BaseAddresses, CfaRule, EhFrame, LittleEndian, UnwindContext, UnwindSection};
use jit_code::{Row, elf_machine};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

fn frames(code: &[u8]) -> Option<Frames> {
    Frames::of(elf_machine::X86_64, code)
}

fn cfas(code: &[u8]) -> Vec<(u32, u16, i32)> {
    let frames = frames(code).expect("its frames can be followed");
    frames.rows().iter().map(|row| (row.offset, row.cfa_register, row.cfa_offset)).collect()
}

#[test]
fn a_leaf_that_never_moves_the_stack_pointer() {
    // lea eax, [rdi+rsi]; ret
    assert_eq!(cfas(&[0x8d, 0x04, 0x37, 0xc3]), [(0, 7, 8)]);
}

#[test]
fn pushes_and_both_ways_of_a_branch() {
    // push rbx; sub rsp, 16; test edi, edi; je +5; add rsp, 16; pop rbx; ret; add rsp, 16; pop rbx; ret
    let code = [
        0x53, 0x48, 0x83, 0xec, 0x10, 0x85, 0xff, 0x74, 0x06, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3,
        0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3,
    ];
    let expected =
        [(0, 7, 8), (1, 7, 16), (5, 7, 32), (13, 7, 16), (14, 7, 8), (15, 7, 32), (19, 7, 16)];
    assert_eq!(cfas(&code)[..7], expected);
    let frames = frames(&code).expect("its frames");
    let saved: Vec<_> = frames.rows().iter().map(|row| row.saved.to_vec()).collect();
    assert_eq!(saved[..2], [vec![], vec![(3, -16)]]);
    assert_eq!(saved[4], []);
}

#[test]
fn a_frame_pointer_where_the_stack_pointer_is_lost() {
    // push rbp; mov rbp, rsp; and rsp, -32; sub rsp, rax; mov rsp, rbp; pop rbp; ret
    let code = [
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x29, 0xc4, 0x48, 0x89, 0xec, 0x5d,
        0xc3,
    ];
    let rows = frames(&code).expect("its frames");
    let rows = rows.rows();
    assert_eq!(rows[2], Row::new(4, 6, 16).saved(&[(6, -16)]));
    assert_eq!(rows.last(), Some(&Row::new(15, 7, 8)));
}

#[test]
fn what_cannot_be_followed_has_no_frames() {
    // sub rsp, rax; ret
    assert_eq!(frames(&[0x48, 0x29, 0xc4, 0xc3]), None);
    // A jump to the entry with another stack pointer: push rax; jmp -3
    assert_eq!(frames(&[0x50, 0xeb, 0xfd]), None);
    // No instruction.
    assert_eq!(frames(&[0x06]), None);
    assert_eq!(frames(&[]), None);
    assert_eq!(Frames::of(elf_machine::AARCH64, &[0xc3]), None);
}

/// Compares each function of the program that this is with what its compiler says.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_compiler_says_the_same() {
    let file = std::fs::read(std::env::current_exe().expect("this program")).expect("its file");
    let file = object::File::parse(&*file).expect("an ELF file");
    let table = file.section_by_name(".eh_frame").expect("unwind info");
    let bases = BaseAddresses::default().set_eh_frame(table.address());
    let bytes = table.data().expect("its bytes");
    let table = EhFrame::new(bytes, LittleEndian);
    let text = file.section_by_name(".text").expect("code");
    let (begin, code) = (text.address(), text.data().expect("its bytes"));
    let mut symbols: Vec<(u64, u64)> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .map(|symbol| (symbol.address(), symbol.size()))
        .collect();
    symbols.sort_unstable();
    symbols.dedup();
    let mut context = UnwindContext::new();
    let (mut all, mut followed, mut alike, mut rows) = (0, 0, 0, 0);
    // A part is enough, and reading all takes seconds.
    for (address, size) in symbols.iter().copied().step_by(7) {
        let from = |table: &EhFrame<_>, bases: &_, at| table.cie_from_offset(bases, at);
        let Ok(fde) = table.fde_for_address(&bases, address, from) else { continue };
        let Some(at) = address.checked_sub(begin) else { continue };
        let bytes = code.get(at as usize..(at + size) as usize);
        let Some(bytes) = bytes.filter(|_| fde.initial_address() == address) else { continue };
        all += 1;
        let Some(frames) = frames(bytes) else { continue };
        followed += 1;
        let mut is_alike = true;
        for row in frames.rows() {
            let at = address + u64::from(row.offset);
            let said = fde.unwind_info_for_address(&table, &bases, &mut context, at);
            let Ok(CfaRule::RegisterAndOffset { register, offset }) = said.map(|it| it.cfa())
            else {
                continue;
            };
            rows += 1;
            // Where there is a frame pointer, both registers may be used.
            let (register, offset) = (register.0, *offset);
            is_alike &= row.cfa_register != register || i64::from(row.cfa_offset) == offset;
        }
        alike += usize::from(is_alike);
    }
    assert!(all > 100 && rows > 1000, "{all} functions, {rows} rows");
    assert!(followed * 100 >= all * 95, "{followed} of {all}");
    assert!(alike * 100 >= followed * 99, "{alike} of {followed}");
}
