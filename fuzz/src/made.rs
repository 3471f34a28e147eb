//! Valid files, made of what the fuzzer gives, in which some fields are then changed: a count, a size, an offset, an address.
//!
//! Bytes that the fuzzer finds by itself seldom get past the first header. Here most of a file is right, so that what a wrong
//! field leads to is deep inside of a reader.

use jitdump::extension::Kind;
use jitdump::{
    ExtendedCode, Inlined, LineEntry, Load, SourcePositionsBuilder, Writer, WriterConfig,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// Where a process's code is, with room for addresses that overlap.
const CODE: u64 = 0x7f00_0000_0000;
/// Pieces of a file: more cost only time.
const MOST: usize = 40;

/// Bytes of a text: readers may take memory in proportion to it.
const LONGEST: usize = 64 << 10;

/// Values that are often wrong where a file has them.
const ODD: [u64; 16] = [
    0,
    1,
    2,
    7,
    0x7f,
    0xff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 33,
    1 << 47,
    i64::MAX as u64,
    u64::MAX - 7,
    u64::MAX,
];

fn number(u: &mut Unstructured<'_>, below: u64) -> Result<u64> {
    u.int_in_range(0..=below - 1)
}

fn text(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    const NAMES: [&str; 8] = [
        "f",
        "LazyCompile:*f /a.js:3:1",
        "JS:~g a.js:1:2",
        "",
        "a b",
        "\u{e4}",
        "x\t<y>",
        "[stub]",
    ];
    let name = *u.choose(&NAMES)?;
    Ok(if u.ratio(1, 20)? { name.repeat(200).into_bytes() } else { name.as_bytes().to_vec() })
}

fn address(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(CODE + 0x10 * number(u, 0x200)?)
}

/// A binary file that `make` makes out of what the fuzzer gives, with some fields changed; `None` if it gives too little.
pub fn binary(bytes: &[u8], make: Make) -> Option<Vec<u8>> {
    changed(bytes, make, damage)
}

/// As [`binary`], for a text.
pub fn lines(bytes: &[u8], make: Make) -> Option<Vec<u8>> {
    changed(bytes, make, damage_text)
}

type Make = fn(&mut Unstructured<'_>) -> Result<Vec<u8>>;
type Damage = fn(&mut Unstructured<'_>, &mut Vec<u8>) -> Result<()>;

fn changed(bytes: &[u8], make: Make, damage: Damage) -> Option<Vec<u8>> {
    let mut u = Unstructured::new(bytes);
    let mut file = make(&mut u).ok()?;
    damage(&mut u, &mut file).ok()?;
    Some(file)
}

/// Changes fields of a binary file: some of them, or none.
fn damage(u: &mut Unstructured<'_>, file: &mut Vec<u8>) -> Result<()> {
    for _ in 0..number(u, 6)? {
        if file.is_empty() {
            return Ok(());
        }
        let at = u.choose_index(file.len())?;
        let width = *u.choose(&[1_usize, 2, 4, 8])?;
        // Fields lie at multiples of 4, but for bytes.
        let at = if width == 1 { at } else { at / 4 * 4 };
        match number(u, 8)? {
            0 => file.truncate(at),
            1 => {
                let end = (at + 1 + u.choose_index(64)?).min(file.len());
                let again = file[at..end].to_vec();
                file.splice(at..at, again);
            }
            2 => {
                let end = (at + 1 + u.choose_index(64)?).min(file.len());
                file.drain(at..end);
            }
            how => {
                let Some(field) = file.get_mut(at..at + width) else { continue };
                let mut old = [0; 8];
                old[..width].copy_from_slice(field);
                let old = u64::from_le_bytes(old);
                let new = match how {
                    3 => old.wrapping_add(1),
                    4 => old.wrapping_sub(1),
                    5 => old ^ 1 << number(u, 8 * width as u64)?,
                    _ => *u.choose(&ODD)?,
                };
                field.copy_from_slice(&new.to_le_bytes()[..width]);
            }
        }
    }
    Ok(())
}

/// Changes numbers and lines of a text.
fn damage_text(u: &mut Unstructured<'_>, file: &mut Vec<u8>) -> Result<()> {
    for _ in 0..number(u, 6)? {
        let lines: Vec<&[u8]> = file.split_inclusive(|&byte| byte == b'\n').collect();
        if lines.is_empty() {
            return Ok(());
        }
        let at = u.choose_index(lines.len())?;
        let start: usize = lines[..at].iter().map(|line| line.len()).sum();
        let line = lines[at].to_vec();
        let whole = start..start + line.len();
        match number(u, 6)? {
            0 => _ = file.drain(whole),
            1 => {
                let times = 1 + u.choose_index(20)?;
                if file.len() + times * line.len() <= LONGEST {
                    file.splice(start..start, line.repeat(times));
                }
            }
            2 => file.truncate(start + u.choose_index(line.len())?),
            _ => {
                // A number becomes another one.
                let digits: Vec<usize> =
                    (0..line.len()).filter(|&at| line[at].is_ascii_digit()).collect();
                if digits.is_empty() {
                    continue;
                }
                let first = *u.choose(&digits)?;
                let count = line[first..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let odd = *u.choose(&ODD)?;
                let new = if u.arbitrary()? { odd.to_string() } else { format!("{odd:x}") };
                file.splice(start + first..start + first + count, new.into_bytes());
            }
        }
    }
    Ok(())
}

/// A jitdump of codes that overlap, move and die, with lines, inlined calls and unwind tables, plain and with what this project's
/// own writers say of them.
pub fn jitdump(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let endian = if u.ratio(1, 8)? { jitdump::Endian::Big } else { jitdump::Endian::Little };
    let machine = *u.choose(&[62_u32, 183, 3, 40])?;
    let config =
        WriterConfig { endian, machine, pid: 7, timestamp: 1, flags: u.ratio(1, 8)?.into() };
    let mut writer = Writer::new(Vec::new(), &config).expect("a header");
    let mut time = 1;
    for index in 0..1 + number(u, MOST as u64)? {
        time += number(u, 3)?;
        let size = 1 + number(u, 200)?;
        let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
        let (name, file) = (text(u)?, text(u)?);
        let start = address(u)?;
        if u.ratio(1, 6)? {
            let moved = jitdump::Move {
                pid: 7,
                tid: 7,
                vma: start,
                old_code_addr: start,
                new_code_addr: address(u)?,
                code_size: size,
                code_index: number(u, index + 1)?,
            };
            _ = writer.move_code(time, &moved);
            continue;
        }
        let mut lines = Vec::new();
        for _ in 0..number(u, 6)? {
            let address = start + number(u, size)?;
            lines.push(LineEntry { address, file: &file, line: number(u, 90)? as u32, column: 1 });
        }
        lines.sort_by_key(|line| line.address);
        let mut inlined = Vec::new();
        for call in 0..number(u, 5)? {
            let first = start + number(u, size)?;
            let parent =
                if call > 0 && u.arbitrary()? { Some(number(u, call)? as u32) } else { None };
            let ranges = vec![first..(first + 1 + number(u, 20)?).min(start + size)];
            inlined.push(Inlined {
                parent,
                name: &name,
                file: &file,
                line: 3,
                ranges,
                ..Inlined::default()
            });
        }
        let code = ExtendedCode {
            timestamp: time,
            pid: 7,
            tid: 7,
            address: start,
            size,
            index,
            name: &name,
            bytes: (!u.ratio(1, 4)?).then_some(&bytes),
            died: if u.ratio(1, 4)? { Some(time + number(u, 9)?) } else { None },
            kind: if u.arbitrary()? { Kind::Stub } else { Kind::Function },
            tier: u.ratio(1, 4)?.then_some(&b"tier"[..]),
            lines: &lines,
            inlined: &inlined,
            ..ExtendedCode::default()
        };
        if u.ratio(1, 4)? {
            let mut positions = SourcePositionsBuilder::default();
            positions.code(code.name, code.address, code.size, code.lines, code.inlined);
            _ = writer.source_positions(time, code.address, &positions);
            let load = Load {
                pid: 7,
                tid: 7,
                vma: start,
                code_addr: start,
                code_index: index,
                name: &name,
                code: &bytes,
                padding: &[],
                missing: 0,
            };
            _ = writer.load(time, &load);
        } else {
            _ = writer.extended(&code);
        }
    }
    Ok(writer.into_sink())
}

/// A recording, a jitdump and a perf map of its processes, each with some fields changed.
pub fn recording_with_code(bytes: &[u8]) -> Option<[Vec<u8>; 3]> {
    let mut u = Unstructured::new(bytes);
    let makes: [(Make, Damage); 3] =
        [(perf_data, damage), (jitdump, damage), (perf_map, damage_text)];
    let mut files = makes.map(|(make, damage)| {
        let mut file = make(&mut u).ok()?;
        damage(&mut u, &mut file).ok()?;
        Some(file)
    });
    Some([files[0].take()?, files[1].take()?, files[2].take()?])
}

/// A perf map whose lines overlap and repeat.
pub fn perf_map(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut map = Vec::new();
    for _ in 0..number(u, MOST as u64)? {
        let (start, size) = (address(u)?, number(u, 0x300)?);
        perf_map::push_line(&mut map, start, size, &text(u)?);
    }
    Ok(map)
}

/// A recording as `perf record` writes it into a pipe, with processes, mappings and samples.
pub fn perf_data(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    // IP | TID | TIME | CPU
    const SAMPLE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7;
    // sample_id_all, and events for mappings, comms and tasks
    const FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23;
    let event = |kind: u32, misc: u16, body: &[u8]| {
        let size = body.len() as u16 + 8;
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
    };
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let pair = |low: u64, high: u64| low | high << 32;
    let padded = |name: &[u8]| {
        let mut name: Vec<u8> = name.iter().copied().take(200).collect();
        name.resize((name.len() + 1).next_multiple_of(8), 0);
        name
    };

    let mut file = b"PERFILE2".to_vec();
    file.extend(16_u64.to_le_bytes());
    // use_clockid: the times of jitdumps are the recording's.
    let clock = if u.ratio(7, 8)? { 1 << 25 } else { 0 };
    let mut attr = words(&[pair(1, 128), 0, 1_000_000, SAMPLE, 0, FLAGS | clock]);
    attr.resize(128, 0);
    // clockid: CLOCK_MONOTONIC
    attr[92] = 1;
    attr.extend(words(&[1]));
    file.extend(event(64, 0, &attr));
    let mut time = 1;
    for _ in 0..number(u, MOST as u64)? {
        time += number(u, 4)?;
        let pid = 1 + number(u, 4)?;
        let both = pair(pid, pid);
        let trailer = words(&[both, time, 0]);
        let made = match number(u, 8)? {
            0 => event(3, 1 << 13, &[words(&[both]), padded(&text(u)?), trailer].concat()),
            // fork, and exit
            1 => {
                event(7, 0, &[words(&[pair(1 + number(u, 4)?, pid), both, time]), trailer].concat())
            }
            2 => event(4, 0, &[words(&[both, both, time]), trailer].concat()),
            3 | 4 => {
                let names = [
                    "//anon",
                    "/tmp/jit-1.dump",
                    "/lib/libc.so.6",
                    "[anon:x]",
                    "/memfd:x (deleted)",
                ];
                let place = words(&[both, address(u)?, 0x1000, 0, pair(8, 1), 77, 1, pair(5, 2)]);
                event(10, 2, &[place, padded(u.choose(&names)?.as_bytes()), trailer].concat())
            }
            5 => event(68, 0, &[]),
            _ => event(9, 2, &words(&[address(u)?, both, time, 0])),
        };
        file.extend(made);
    }
    Ok(file)
}

/// What callgrind writes: names by number, costs by address and line, calls and jumps, within code that it does not know.
pub fn callgrind(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    use std::io::Write as _;
    let mut file = b"version: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: a\npart: 1\n\n".to_vec();
    file.extend_from_slice(b"positions: instr line\nevents: Ir\nsummary: 100\n\n");
    let line = |u: &mut Unstructured<'_>, file: &mut Vec<u8>| -> Result<()> {
        let place = if u.ratio(1, 3)? {
            format!("+{}", number(u, 64)?)
        } else {
            format!("{:#x}", address(u)?)
        };
        _ = writeln!(file, "{place} {} {}", number(u, 50)?, number(u, 1000)?);
        Ok(())
    };
    for _ in 0..number(u, MOST as u64)? {
        let id = 1 + number(u, 6)?;
        match number(u, 6)? {
            0 => _ = writeln!(file, "ob=({id})"),
            1 => _ = writeln!(file, "fl=({id}) file{id}.c"),
            2 => {
                _ = writeln!(file, "fn=({id}) {:#018x}", address(u)?);
                line(u, &mut file)?;
            }
            3 => {
                _ = writeln!(file, "cfn=({id})\ncalls={} {:#x} 0", number(u, 9)?, address(u)?);
                line(u, &mut file)?;
            }
            4 => _ = writeln!(file, "jump={} {:#x} 3\n+1 1", 1 + number(u, 9)?, address(u)?),
            _ => line(u, &mut file)?,
        }
    }
    file.extend_from_slice(b"\ntotals: 100\n");
    Ok(file)
}

/// A whole file of one of valgrind's other tools: which, and its bytes.
pub fn valgrind_log(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let seeds: [&[u8]; 5] = [
        include_bytes!("../corpus/valgrind_log/text"),
        include_bytes!("../corpus/valgrind_log/xml"),
        include_bytes!("../corpus/valgrind_log/massif"),
        include_bytes!("../corpus/valgrind_log/dhat"),
        include_bytes!("../corpus/valgrind_log/cachegrind"),
    ];
    Ok(u.choose(&seeds)?.to_vec())
}

/// A code log as the library wrote it.
pub fn code_log(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let seeds: [&[u8]; 2] =
        [include_bytes!("../corpus/code_log/bytes"), include_bytes!("../corpus/code_log/lean")];
    Ok(u.choose(&seeds)?.to_vec())
}
