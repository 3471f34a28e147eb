//! Objects as runtimes registered them: what readelf and addr2line say of them.

use gdb_jit_list::{SourceLine, Symfile};
use gimli::{BaseAddresses, CfaRule, EhFrame, LittleEndian, UnwindContext, UnwindSection};

const LLI: &[u8] = include_bytes!("../symfiles/lli-14.o");
const NUMBA: &[u8] = include_bytes!("../symfiles/numba-debug.o");
const WASMTIME: &[u8] = include_bytes!("../symfiles/wasmtime.o");
const PHP: &[u8] = include_bytes!("../symfiles/php.o");

fn functions(object: &[u8]) -> Vec<(u64, u64, String)> {
    let symfile = Symfile::parse(object).expect("an object");
    assert!(!symfile.is_of_jitscribe());
    assert_eq!(symfile.machine(), 62);
    let functions = symfile.functions();
    let of = |function: &gdb_jit_list::Function<'_>| {
        (function.address, function.size, String::from_utf8_lossy(function.name).into_owned())
    };
    functions.iter().map(of).collect()
}

fn lines(object: &[u8]) -> Vec<SourceLine> {
    Symfile::parse(object).expect("an object").lines()
}

#[test]
fn values_of_relocatable_objects_are_relative_to_their_section() {
    let (fib, main) = ("fib".to_owned(), "main".to_owned());
    assert_eq!(functions(LLI), [(0x7ff5_3993_5000, 48, fib), (0x7ff5_3993_5030, 22, main)]);
    assert!(lines(LLI).is_empty());
}

#[test]
fn numba_s_code_is_not_in_text() {
    let functions = functions(NUMBA);
    assert_eq!(functions.len(), 6);
    let (address, size, name) = &functions[0];
    assert_eq!((*address, *size), (0x7f23_3ad5_8000, 301));
    assert!(name.starts_with("_ZN8__main__5outerB2v2"), "{name}");
    assert!(functions.is_sorted());
}

#[test]
fn wasmtime_s_shared_libraries_have_relative_values() {
    let functions = functions(WASMTIME);
    let fib = ("wasm[0]::function[0]::fib".to_owned(), 0x7fed_571d_9000);
    assert_eq!((functions[0].2.clone(), functions[0].0), fib);
    assert_eq!((functions[1].0, functions[1].1), (0x7fed_571d_908b, 189));
}

#[test]
fn lines_are_those_of_the_process() {
    let of = |object| {
        let lines = lines(object);
        let symfile = Symfile::parse(object).expect("an object");
        let functions = symfile.functions();
        for line in &lines {
            // The end of a function may be that of the section.
            let is_in = functions.iter().any(|it| it.range().contains(&line.address));
            assert!(is_in, "{line:x?}");
        }
        assert!(lines.is_sorted_by_key(|line| line.address));
        lines
    };
    let numba = of(NUMBA);
    assert_eq!(numba.first().map(|line| (line.address, line.line)), Some(NUMBA_FIRST));
    let wasmtime = of(WASMTIME);
    // What has no line is left out. Its lines are offsets in the module.
    let first = wasmtime.first().map(|line| (line.address, line.line, &*line.file));
    assert_eq!(first, Some((0x7fed_571d_902b, 39, &b"/<wasm-module>/<gen-0>.wasm"[..])));
    let php = of(PHP);
    assert_eq!(php.first().map(|line| line.line), Some(1));
}

/// As `objdump --dwarf=decodedline` shows it, moved to the section.
const NUMBA_FIRST: (u64, u32) = (0x7f23_3ad5_8000, 31);

/// A row of unwind info: its offset, the register of the CFA, and the distance from it.
type FrameRow = (u64, u16, i64);

/// The rows of each function that has some, as readers of a jitdump see them, behind the code.
fn rows(object: &[u8]) -> Vec<(String, Vec<FrameRow>)> {
    let symfile = Symfile::parse(object).expect("an object");
    let frames = symfile.frames();
    let of = |function: &gdb_jit_list::Function<'_>| {
        let range = function.range();
        let section = frames.of(&range)?;
        let address = range.start + function.size.next_multiple_of(8);
        let bases = BaseAddresses::default().set_eh_frame(address).set_text(range.start);
        let table = EhFrame::new(&section, LittleEndian);
        let from = |table: &EhFrame<_>, bases: &_, at| table.cie_from_offset(bases, at);
        let fde = table.fde_for_address(&bases, range.start, from).expect("its entry");
        assert_eq!(fde.initial_address(), range.start);
        assert_eq!(fde.end_address(), range.end);
        let mut context = UnwindContext::new();
        let mut table = fde.rows(&table, &bases, &mut context).expect("rows");
        let mut rows = Vec::new();
        while let Some(row) = table.next_row().expect("a row") {
            let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { panic!() };
            rows.push((row.start_address() - range.start, register.0, *offset));
        }
        Some((String::from_utf8_lossy(function.name).into_owned(), rows))
    };
    symfile.functions().iter().filter_map(of).collect()
}

#[test]
fn unwind_info_is_that_of_the_compiler() {
    // As `readelf --debug-dump=frames-interp` shows it.
    let lli = rows(LLI);
    assert_eq!(lli[0].0, "fib");
    assert_eq!(lli[0].1[..4], [(0, 7, 8), (1, 7, 16), (3, 7, 24), (4, 7, 32)]);
    let numba = rows(NUMBA);
    assert_eq!(numba.len(), 6);
    assert_eq!(numba[0].1[..3], [(0, 7, 8), (1, 7, 16), (3, 7, 24)]);
    // Of a section without an address.
    let wasmtime = rows(WASMTIME);
    assert_eq!(wasmtime[0].0, "wasm[0]::function[0]::fib");
    assert_eq!(wasmtime[0].1[..3], [(0, 7, 8), (1, 7, 16), (25, 6, 16)]);
    // Relative to the code.
    assert_eq!(rows(PHP).iter().map(|(_, rows)| rows.clone()).collect::<Vec<_>>(), [[(0, 7, 160)]]);
}
