//! The human-readable listing: one line per code.

use code_timeline::{History, MoveId};
use jitdump::{CodeEvent, CodeLoad, Dump, Endian};

use super::ending::ending;
use super::input::Input;
use super::live::history_of;
use super::time::ListedTime;
use crate::text::{self, Out};
use crate::{Result, note};

/// Lists the content of a jitdump in file order.
pub fn jitdump(dump: &Dump<'_>, input: &Input, out: &mut Out) -> Result<()> {
    let header = dump.header();
    let ticks = header.arch_timestamp();
    let mut codes = dump.codes();
    let order = match header.endian {
        Endian::Little => "little",
        Endian::Big => "big",
    };
    let quirks = *codes.quirks();
    let mut print = |line: std::fmt::Arguments<'_>| out.line(line);
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
    let mut names: Option<Moved<'_>> = None;
    for event in codes.by_ref() {
        match event {
            Err(error) => note::warning(input.describe(error)),
            Ok(CodeEvent::Load(code)) => {
                let lines = code.lines().count();
                let unwind = code.unwind().is_some();
                sum.loads += 1;
                sum.with_lines += u64::from(lines > 0);
                sum.with_unwind += u64::from(unwind);
                sum.lean += u64::from(code.is_lean());
                print(format_args!(
                    "{} {:>16x} {:>8x} {:>8} {lines:>6} {:>6} {}{}",
                    ListedTime { time: code.timestamp, ticks },
                    code.address,
                    code.size,
                    code.tid,
                    if unwind { "yes" } else { "no" },
                    text::whole(code.name),
                    besides(&code, ticks)
                ))?;
            }
            Ok(CodeEvent::Move(moved)) => {
                sum.moves += 1;
                let name = names.get_or_insert_with(|| Moved::of(dump)).next_name();
                print(format_args!(
                    "{} {:>16x} {:>8x} {:>8} {:>6} {:>6} {} (moved from {:x})",
                    ListedTime { time: moved.timestamp, ticks },
                    moved.new_address,
                    moved.size,
                    moved.tid,
                    "-",
                    "-",
                    text::whole(name.unwrap_or(b"?")),
                    moved.old_address
                ))?;
            }
            Ok(CodeEvent::Close { timestamp }) => {
                print(format_args!("{} (closed)", ListedTime { time: timestamp, ticks }))?;
            }
        }
    }
    if let Some(ending) = ending(codes.end()) {
        note::warning(input.describe(ending));
    }
    let left_out = codes.left_out();
    if left_out.count > 0 {
        note::warning(input.describe(format_args!(
            "{} codes are missing because the log was full, from {} to {}",
            left_out.count,
            ListedTime { time: left_out.first, ticks },
            ListedTime { time: left_out.last, ticks },
        )));
    }
    let lean = if sum.lean > 0 { format!(", {} without bytes", sum.lean) } else { String::new() };
    note::say(format_args!(
        "{}: {} loads ({} with lines, {} with unwind tables{lean}), {} moves",
        text::path(input.name()),
        sum.loads,
        sum.with_lines,
        sum.with_unwind,
        sum.moves
    ));
    Ok(())
}

/// The names of moved codes, in file order. Which code a move refers to depends on all events with earlier
/// timestamps, which may come later in the file. Therefore the dump is read a second time at the first move. Few
/// dumps have moves.
struct Moved<'a> {
    history: History<&'a [u8]>,
    moves: std::vec::IntoIter<MoveId>,
}

impl<'a> Moved<'a> {
    fn of(dump: &Dump<'a>) -> Self {
        let (history, moves) = history_of(dump.codes().flatten(), u64::MAX, |load| load.name);
        Self { history, moves: moves.into_iter() }
    }

    /// The name of the code that the next move refers to.
    fn next_name(&mut self) -> Option<&'a [u8]> {
        let code = self.history.moved(self.moves.next()?)?;
        Some(self.history.code(code).origin)
    }
}

#[derive(Default)]
struct Sum {
    loads: u64,
    with_lines: u64,
    with_unwind: u64,
    lean: u64,
    moves: u64,
}

/// Facts that only dumps of this project have and that have no column, in brackets after the name.
fn besides(code: &CodeLoad<'_>, ticks: bool) -> String {
    if code.tail().is_none() {
        return String::new();
    }
    let mut said = vec![code.kind().to_string()];
    said.extend(code.tier().map(|tier| text::whole(tier).to_string()));
    let count = |number: usize, what: &str| (number > 0).then(|| format!("{number} {what}"));
    said.extend(count(code.ir_lines().count(), "IR lines"));
    said.extend(count(code.inlined().count(), "calls inlined"));
    let died = code.died().map(|time| ListedTime { time, ticks }.to_string());
    said.extend(died.map(|died| format!("died at {}", died.trim_start())));
    format!(" [{}]", said.join(", "))
}

/// Lists the content of a perf map in file order.
pub fn perf_map(input: &Input, out: &mut Out) -> Result<()> {
    out.line("# perf map")?;
    out.line(format_args!("# {:>14} {:>8} NAME", "ADDRESS", "SIZE"))?;
    let (mut entries, mut unreadable) = (0_u64, 0_u64);
    for entry in perf_map::entries(input.bytes()) {
        match entry {
            Ok(entry) => {
                entries += 1;
                let name = text::whole(entry.name);
                out.line(format_args!("{:>16x} {:>8x} {name}", entry.address, entry.size))?;
            }
            Err(error) => {
                unreadable += 1;
                note::warning(input.describe(error));
            }
        }
    }
    note::say(format_args!(
        "{}: {entries} entries, {unreadable} unreadable lines",
        text::path(input.name())
    ));
    Ok(())
}
