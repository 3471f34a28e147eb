//! What perf 6.1 recorded of a BPF program (Linux 6.18 on x86-64), which was loaded with BTF that says the lines of `bpf/spin.bpf.c`.

use perf_data::{BpfFunction, Endian, Features, feature};
use proptest::prelude::*;

const PROG_INFO: &[u8] = include_bytes!("bpf/prog_info");
const BTF: &[u8] = include_bytes!("bpf/btf");
const SOURCE: &str = include_str!("bpf/spin.bpf.c");

fn features(programs: &[u8], btf: &[u8]) -> Features {
    let mut features = Features::default();
    features.set(feature::BPF_PROG_INFO, programs.to_vec());
    features.set(feature::BPF_BTF, btf.to_vec());
    features
}

#[test]
fn programs_have_code_and_lines() {
    let features = features(PROG_INFO, BTF);
    let functions = features.bpf_functions(Endian::Little);
    let [BpfFunction { tag, address, code, lines }] = &functions[..] else {
        panic!("{functions:?}");
    };
    // As the kernel named it: bpf_prog_99252ce72de0cb67_spin.
    assert_eq!(tag, &[0x99, 0x25, 0x2c, 0xe7, 0x2d, 0xe0, 0xcb, 0x67]);
    assert_eq!((*address, code.len()), (0xffff_ffff_c002_2108, 44));
    // The last instruction is `ret`, or a jump to the kernel's.
    assert!(code.ends_with(&[0xc3]) || code[39] == 0xe9, "{code:x?}");
    let found: Vec<(u32, u32)> = lines.iter().map(|line| (line.line, line.column)).collect();
    assert_eq!(found, [(2, 5), (3, 10), (4, 9), (3, 10), (5, 5)]);
    let texts: Vec<&str> = SOURCE.lines().collect();
    for line in lines {
        assert_eq!(line.file, b"/src/spin.bpf.c");
        assert_eq!(line.text, texts[line.line as usize - 1].as_bytes());
    }
    assert!(lines.is_sorted_by_key(|line| line.offset), "{lines:?}");
    // Multiplication is on its line.
    let imul = code.windows(2).position(|two| two == [0x6b, 0xff] || two == [0x6b, 0xf6]);
    if let Some(imul) = imul {
        let line = lines.iter().rfind(|line| line.offset <= imul as u64).expect("a line");
        assert_eq!(line.line, 4);
    }
}

#[test]
fn without_texts_there_are_lines() {
    let features = features(PROG_INFO, &[]);
    let functions = features.bpf_functions(Endian::Little);
    let lines: Vec<u32> = functions[0].lines.iter().map(|line| line.line).collect();
    assert_eq!(lines, [2, 3, 4, 3, 5]);
    assert!(functions[0].lines.iter().all(|line| line.file.is_empty() && line.text.is_empty()));
}

#[test]
fn what_is_cut_off_is_left_out() {
    for end in 0..PROG_INFO.len() {
        assert_eq!(features(&PROG_INFO[..end], BTF).bpf_functions(Endian::Little), []);
    }
    for end in 0..BTF.len() {
        let features = features(PROG_INFO, &BTF[..end]);
        assert_eq!(features.bpf_functions(Endian::Little).len(), 1);
    }
}

/// Programs that share all their data claim as many lines as there may be.
#[test]
fn counts_are_bounded() {
    let mut programs = u32::MAX.to_le_bytes().to_vec();
    for _ in 0..100_000 {
        programs.extend(&PROG_INFO[4..]);
    }
    let features = features(&programs, BTF);
    let functions = features.bpf_functions(Endian::Little);
    assert_eq!(functions.len(), 1 << 16);
    let lines: usize = functions.iter().map(|function| function.lines.len()).sum();
    assert_eq!(lines, 1 << 18);
}

proptest! {
    #[test]
    fn any_bytes_are_read(
        changes in prop::collection::vec((0..PROG_INFO.len(), any::<u8>()), 0..8),
        in_btf in prop::collection::vec((0..BTF.len(), any::<u8>()), 0..4),
        is_big in any::<bool>(),
    ) {
        let (mut programs, mut btf) = (PROG_INFO.to_vec(), BTF.to_vec());
        changes.into_iter().for_each(|(at, byte)| programs[at] = byte);
        in_btf.into_iter().for_each(|(at, byte)| btf[at] = byte);
        let features = features(&programs, &btf);
        let endian = if is_big { Endian::Big } else { Endian::Little };
        for function in features.bpf_functions(endian) {
            let size = function.code.len() as u64;
            prop_assert!(function.lines.iter().all(|line| line.offset < size));
        }
    }
}
