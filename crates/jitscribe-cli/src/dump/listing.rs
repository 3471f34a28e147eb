//! The listing for people: one line a code.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use jitdump::{CodeEvent, CodeLoad, Dump, Endian};

use super::ending;
use super::input::Input;
use super::time::Shown;
use crate::{Error, Result, note};

/// What a jitdump holds, in the order of the file.
pub fn jitdump(dump: &Dump<'_>, input: &Input, out: &mut impl Write) -> Result<()> {
    let header = dump.header();
    let ticks = header.arch_timestamp();
    let mut codes = dump.codes();
    let order = match header.endian {
        Endian::Little => "little",
        Endian::Big => "big",
    };
    let quirks = *codes.quirks();
    let mut print = |line: std::fmt::Arguments<'_>| writeln!(out, "{line}").map_err(Error::Stdout);
    print(format_args!(
        "# jitdump version {}, {order}-endian, ELF machine {}, pid {}, times in {}",
        header.version,
        quirks.machine,
        header.pid,
        if ticks { "ticks of the processor's clock" } else { "seconds" },
    ))?;
    print(format_args!(
        "# {:>18} {:>16} {:>8} {:>8} {:>6} {:>6} NAME",
        "TIME", "ADDRESS", "SIZE", "TID", "LINES", "UNWIND"
    ))?;

    let mut sum = Sum::default();
    let mut names: HashMap<u64, &[u8]> = HashMap::new();
    for event in codes.by_ref() {
        match event {
            Err(error) => note::warning(input.told(error)),
            Ok(CodeEvent::Load(code)) => {
                names.insert(code.index, code.name);
                let lines = code.lines().count();
                let unwind = code.unwind().is_some();
                sum.loads += 1;
                sum.with_lines += u64::from(lines > 0);
                sum.with_unwind += u64::from(unwind);
                sum.lean += u64::from(code.is_lean());
                print(format_args!(
                    "{} {:>16x} {:>8x} {:>8} {lines:>6} {:>6} {}{}",
                    Shown { time: code.timestamp, ticks },
                    code.address,
                    code.size,
                    code.tid,
                    if unwind { "yes" } else { "no" },
                    shown(code.name),
                    besides(&code, ticks)
                ))?;
            }
            Ok(CodeEvent::Move(moved)) => {
                sum.moves += 1;
                print(format_args!(
                    "{} {:>16x} {:>8x} {:>8} {:>6} {:>6} {} (moved from {:x})",
                    Shown { time: moved.timestamp, ticks },
                    moved.new_address,
                    moved.size,
                    moved.tid,
                    "-",
                    "-",
                    names.get(&moved.index).map_or("?".into(), |name| shown(name)),
                    moved.old_address
                ))?;
            }
            Ok(CodeEvent::Close { timestamp }) => {
                print(format_args!("{} (closed)", Shown { time: timestamp, ticks }))?;
            }
        }
    }
    if let Some(ending) = ending(codes.end()) {
        note::warning(input.told(ending));
    }
    let left_out = codes.left_out();
    if left_out.count > 0 {
        note::warning(input.told(format_args!(
            "{} codes are missing: there was no room for them from {} to {}",
            left_out.count,
            Shown { time: left_out.first, ticks },
            Shown { time: left_out.last, ticks },
        )));
    }
    let lean = if sum.lean > 0 { format!(", {} without bytes", sum.lean) } else { String::new() };
    note::say(format_args!(
        "{}: {} loads ({} with lines, {} with unwind tables{lean}), {} moves",
        input.name().display(),
        sum.loads,
        sum.with_lines,
        sum.with_unwind,
        sum.moves
    ));
    Ok(())
}

#[derive(Default)]
struct Sum {
    loads: u64,
    with_lines: u64,
    with_unwind: u64,
    lean: u64,
    moves: u64,
}

/// What a dump of ours says of a code beyond what has a column, in brackets behind its name.
fn besides(code: &CodeLoad<'_>, ticks: bool) -> String {
    if code.tail().is_none() {
        return String::new();
    }
    let mut said = vec![code.kind().to_string()];
    said.extend(code.tier().map(|tier| shown(tier).into_owned()));
    let count = |number: usize, what: &str| (number > 0).then(|| format!("{number} {what}"));
    said.extend(count(code.ir_lines().count(), "IR lines"));
    said.extend(count(code.inlined().count(), "calls inlined"));
    let died = code.died().map(|time| Shown { time, ticks }.to_string());
    said.extend(died.map(|died| format!("died at {}", died.trim_start())));
    format!(" [{}]", said.join(", "))
}

/// What a perf map holds, in the order of the file.
pub fn perf_map(input: &Input, out: &mut impl Write) -> Result<()> {
    writeln!(out, "# perf map").map_err(Error::Stdout)?;
    writeln!(out, "# {:>14} {:>8} NAME", "ADDRESS", "SIZE").map_err(Error::Stdout)?;
    let (mut entries, mut unreadable) = (0_u64, 0_u64);
    for entry in perf_map::entries(input.bytes()) {
        match entry {
            Ok(entry) => {
                entries += 1;
                writeln!(out, "{:>16x} {:>8x} {}", entry.address, entry.size, shown(entry.name))
                    .map_err(Error::Stdout)?;
            }
            Err(error) => {
                unreadable += 1;
                note::warning(input.told(error));
            }
        }
    }
    note::say(format_args!(
        "{}: {entries} entries, {unreadable} lines that cannot be read",
        input.name().display()
    ));
    Ok(())
}

/// A name as a terminal may see it: control characters escaped.
pub fn shown(name: &[u8]) -> Cow<'_, str> {
    let name = String::from_utf8_lossy(name);
    if !name.contains(char::is_control) {
        return name;
    }
    let escape = |c: char| {
        if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
    };
    Cow::Owned(name.chars().map(escape).collect())
}
