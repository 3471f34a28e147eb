//! The instructions of real programs, as objdump decodes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use disassembly::{Instruction, ReferenceKind, Syntax, disassemble};
use object::write::{Object as Written, StandardSection};
use object::{Architecture, BinaryFormat, Endianness};

const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// An instruction that a tool printed.
struct Printed {
    address: u64,
    length: u64,
    text: String,
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("cannot start {command:?}: {error}: run scripts/setup.sh test")
    });
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The instructions in what objdump prints: `  401000:\t48 89 c3\tmov    rbx,rax`.
fn printed(text: &str) -> Vec<(Printed, Vec<u8>)> {
    let instructions = text.lines().filter_map(|line| {
        let mut columns = line.splitn(3, '\t');
        let (place, rest) = columns.next()?.split_once(':')?;
        let address = u64::from_str_radix(place.trim(), 16).ok()?;
        // LLVM's has the bytes in the first column.
        let hex = if rest.trim().is_empty() { columns.next()? } else { rest };
        let bytes: Vec<u8> =
            hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect(line)).collect();
        let text = columns.collect::<Vec<_>>().join(" ");
        Some((Printed { address, length: bytes.len() as u64, text }, bytes))
    });
    instructions.collect()
}

/// Disassembles each stretch of instructions without a gap, and passes pairs of what both say.
fn compare(
    machine: u16,
    syntax: Syntax,
    printed: &[(Printed, Vec<u8>)],
    mut with: impl FnMut(&Printed, &Instruction),
) {
    let mut rest = printed;
    while let Some(((first, _), _)) = rest.split_first() {
        let mut end = first.address;
        let stretch = rest.iter().take_while(|(printed, _)| {
            let follows = printed.address == end;
            end = printed.address + printed.length;
            follows
        });
        let (stretch, behind) = rest.split_at(stretch.count());
        rest = behind;
        let bytes: Vec<u8> = stretch.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let ours = disassemble(machine, first.address, &bytes, syntax).expect("a machine");
        let mut count = 0;
        for (instruction, (printed, _)) in ours.zip(stretch) {
            let at = (first.address + instruction.offset, u64::from(instruction.length));
            assert_eq!(at, (printed.address, printed.length), "{} {instruction:?}", printed.text);
            with(printed, &instruction);
            count += 1;
        }
        assert_eq!(count, stretch.len());
    }
}

/// The address in `# 1234 <name>`, or in the operand of a branch.
fn target(text: &str) -> Option<u64> {
    let place = match text.split_once("# ") {
        Some((_, place)) => place.trim_start_matches("0x"),
        None => {
            let (_, operands) = text.split_once([' ', '\t'])?;
            let last = operands.split(" <").next()?.trim().rsplit([' ', ',']).next()?;
            last.trim_start_matches("0x")
        }
    };
    u64::from_str_radix(place.split(' ').next()?, 16).ok()
}

/// The text in the same form, no matter which tool wrote it: no spaces, names or comments, and numbers in decimal.
fn normal(text: &str) -> String {
    let text = text.split(" <").next().unwrap_or_default();
    let text = text.split('#').next().unwrap_or_default().trim();
    let mut normal = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is_inside = normal.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let hexadecimal = rest.strip_prefix("0x").filter(|_| !is_inside);
        let digits = hexadecimal.unwrap_or(rest);
        let end = digits
            .find(|digit: char| match hexadecimal {
                Some(_) => !digit.is_ascii_hexdigit(),
                None => !digit.is_ascii_digit(),
            })
            .unwrap_or(digits.len());
        if end > 0 && !is_inside {
            let base = if hexadecimal.is_some() { 16 } else { 10 };
            let number = u64::from_str_radix(&digits[..end], base).expect("a number");
            // objdump has some negative numbers in two's complement, others with a sign.
            let signed = i64::from_ne_bytes(number.to_ne_bytes());
            if signed < 0 && normal.ends_with('+') {
                normal.pop();
            }
            normal.push_str(&signed.to_string());
            rest = &digits[end..];
        } else {
            if !letter.is_whitespace() {
                normal.push(letter.to_ascii_lowercase());
            }
            rest = &rest[letter.len_utf8()..];
        }
    }
    normal
}

/// This test program.
fn program() -> std::path::PathBuf {
    std::env::current_exe().expect("a path")
}

#[test]
fn lengths_and_targets_of_this_program_are_objdump_s() {
    if cfg!(not(target_arch = "x86_64")) {
        // objdump here does not know x86-64; the test of AArch64 below runs everywhere.
        return;
    }
    let output = run(Command::new("objdump").args(["-d", "-w", "-M", "intel"]).arg(program()));
    let instructions = printed(&output);
    assert!(instructions.len() > 50_000, "{} instructions", instructions.len());
    let mut counts = BTreeMap::<&str, u32>::new();
    compare(X86_64, Syntax::Intel, &instructions, |printed, ours| {
        let mnemonic = printed.text.split_whitespace().next().unwrap_or_default();
        let has_target = printed.text.contains("# ")
            || ((mnemonic.starts_with('j') || mnemonic == "call")
                && target(&printed.text).is_some());
        let reference =
            ours.reference.as_ref().filter(|reference| reference.kind != ReferenceKind::Constant);
        let address = reference.map(|reference| reference.address);
        if has_target {
            assert_eq!(address, target(&printed.text), "{}\n{ours:?}", printed.text);
        } else {
            assert_eq!(address, None, "{}\n{ours:?}", printed.text);
        }
        let kind = match reference.map(|reference| reference.kind) {
            Some(ReferenceKind::Call) => "call",
            Some(ReferenceKind::Jump) => "jump",
            Some(_) => "data",
            None => "none",
        };
        assert_eq!(
            kind == "call",
            has_target && mnemonic == "call" && !printed.text.contains("# ")
        );
        if let Some(place) = reference.and_then(|reference| reference.place.clone()) {
            assert_eq!(ours.text[place], format!("{:#x}", address.expect("an address")));
        }
        *counts.entry(kind).or_default() += 1;
    });
    for kind in ["call", "jump", "data", "none"] {
        assert!(counts.get(kind).is_some_and(|count| *count > 1_000), "{counts:?}");
    }
}

/// An instruction of x86 in the same form, no matter which tool wrote it.
fn normal_x86(text: &str) -> String {
    let text = text.trim();
    // The addresses of branches are compared above.
    let branch = text.trim_start_matches("bnd ").trim_start_matches("notrack ");
    let target = branch.split_whitespace().nth(1).unwrap_or_default();
    let is_direct = target.trim_start_matches("0x").starts_with(|c: char| c.is_ascii_hexdigit());
    if (branch.starts_with('j') || branch.starts_with("call")) && is_direct {
        return branch.split(' ').next().unwrap_or_default().to_owned();
    }
    // Padding has any number of prefixes without a meaning, which are spelled or not.
    if text.contains("nop") {
        return "nop".into();
    }
    // A register that is source and destination is written once or twice.
    if text.starts_with("imul") {
        return "imul".into();
    }
    let mut text = normal(text);
    for (from, to) in SPELLINGS {
        text = text.replace(from, to);
    }
    text
}

/// Of iced, and of objdump.
const SPELLINGS: [(&str, &str); 17] = [
    ("ptr", ""),
    ("*1", ""),
    ("+0]", "]"),
    ("movabs", "mov"),
    ("es:[", "["),
    ("ds:[", "["),
    (",1)", ")"),
    ("%es:(", "("),
    ("%ds:(", "("),
    ("0x0(", "("),
    (",0(", ",("),
    ("callq", "call"),
    ("jmpq", "jmp"),
    ("pushq", "push"),
    ("shr$1,", "shr"),
    ("shl$1,", "shl"),
    ("data16", ""),
];

#[test]
fn texts_of_this_program_are_objdump_s() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for (syntax, name) in [(Syntax::Intel, "intel"), (Syntax::Att, "att")] {
        let output = run(Command::new("objdump").args(["-d", "-w", "-M", name]).arg(program()));
        let mut different = BTreeMap::<String, (u32, String)>::new();
        let mut all = 0;
        compare(X86_64, syntax, &printed(&output), |printed, ours| {
            // A part of them, as this takes long.
            if printed.address % 5 > 0 {
                return;
            }
            all += 1;
            let (theirs, ours) = (normal_x86(&printed.text), normal_x86(&ours.text));
            if theirs != ours {
                let mnemonic = printed.text.split(' ').next().unwrap_or_default().to_owned();
                let entry = different.entry(mnemonic).or_insert((0, format!("{theirs}  {ours}")));
                entry.0 += 1;
            }
        });
        let count: u32 = different.values().map(|(count, _)| count).sum();
        assert!(count * 1000 < all, "{count} of {all} in {name}:\n{different:#?}");
    }
}

/// Functions with branches of all kinds, calls, constants, addresses of data, vectors.
const FUNCTIONS: &str = include_str!("functions.ll");

/// What LLVM's objdump prints of an object file.
fn dumped(object: &Path) -> String {
    run(Command::new("llvm-objdump").args(["-d", "--no-leading-headers"]).arg(object))
}

/// What LLVM says an instruction of AArch64 refers to: an address, or a number that is relative to the instruction, in decimal.
fn target_of_llvm(printed: &Printed) -> Option<u64> {
    let last = printed.text.split(" <").next()?.rsplit([' ', '\t']).next()?;
    let base = match printed.text.starts_with("adrp") {
        true => printed.address & !0xfff,
        false => printed.address,
    };
    match last.strip_prefix('#') {
        Some(relative) => Some(base.wrapping_add_signed(relative.parse().ok()?)),
        None => u64::from_str_radix(last.trim_start_matches("0x"), 16).ok(),
    }
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn aarch64_is_as_llvm_decodes_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("functions.ll");
        fs::write(&source, FUNCTIONS).expect("a file");
        let object = folder.path().join("functions.o");
        let mut compiler = Command::new("llc-14");
        compiler.args(["-mtriple=aarch64-linux-gnu", "-O2", "-filetype=obj", "-o"]);
        run(compiler.arg(&object).arg(&source));
        let instructions = printed(&dumped(&object));
        assert!(instructions.len() > 100, "{} instructions", instructions.len());
        let mut different = Vec::new();
        let mut targets = 0;
        compare(AARCH64, Syntax::Intel, &instructions, |printed, ours| {
            targets += u32::from(ours.reference.is_some());
            let (theirs, text) = (normal(&printed.text), normal(&ours.text));
            // LLVM writes these addresses relative to the instruction: they are compared below.
            if theirs != text && !theirs.starts_with("adr") {
                different.push(format!("{theirs}  {text}"));
            }
        });
        assert!(targets > 10, "{targets} targets");
        assert_eq!(different, [""; 0]);
    }

    /// Random words of those classes whose targets count: all of them lead where LLVM says.
    #[test]
    fn branches_of_aarch64_lead_where_llvm_says() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) | (state.wrapping_mul(747_796_405) & 0xffff_0000)
        };
        // Fixed bits and their mask: b, bl, b.cond, cbz/cbnz, tbz/tbnz, adr, adrp, ldr (literal).
        let classes: [(u32, u32); 9] = [
            (0x1400_0000, 0xfc00_0000),
            (0x9400_0000, 0xfc00_0000),
            (0x5400_0000, 0xff00_0010),
            (0x3400_0000, 0x7e00_0000),
            (0x3600_0000, 0x7e00_0000),
            (0x1000_0000, 0x9f00_0000),
            (0x9000_0000, 0x9f00_0000),
            (0x1800_0000, 0xbf00_0000),
            (0x9800_0000, 0xff00_0000),
        ];
        let words = (0..3_600).map(|place| {
            let (fixed, mask) = classes[place % classes.len()];
            fixed | (random() & !mask)
        });
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let mut object = Written::new(BinaryFormat::Elf, Architecture::Aarch64, Endianness::Little);
        let text = object.section_id(StandardSection::Text);
        object.set_section_data(text, bytes, 4);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("words.o");
        fs::write(&path, object.write().expect("an object")).expect("a file");
        let instructions = printed(&dumped(&path));
        assert_eq!(instructions.len(), 3_600);
        compare(AARCH64, Syntax::Intel, &instructions, |printed, ours| {
            let Some(reference) = &ours.reference else { panic!("{} {ours:?}", printed.text) };
            let theirs = target_of_llvm(printed).unwrap_or_else(|| panic!("{}", printed.text));
            let low = |address: u64| address & 0xffff_ffff_ffff;
            assert_eq!(low(reference.address), low(theirs), "{} {ours:?}", printed.text);
            let is_call = printed.text.starts_with("bl");
            assert_eq!(reference.kind == ReferenceKind::Call, is_call, "{}", printed.text);
        });
    }
}
