//! The human-readable listing: one line per code.

use code_index::DumpEvents;
use code_timeline::{History, HistoryBuilder, MoveId, Processes};
use jitdump::{CodeEvent, CodeLoad, Dump, Endian};

use super::ending::ending;
use super::input::Input;
use super::time::FormattedTime;
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

    let mut totals = Totals::default();
    let mut names: Option<MoveLine<'_>> = None;
    for event in codes.by_ref() {
        match event {
            Err(error) => note::warning(input.message(error)),
            Ok(CodeEvent::Load(code)) => {
                let lines = code.lines().count();
                let unwind = code.unwind().is_some();
                totals.loads += 1;
                totals.with_lines += u64::from(lines > 0);
                totals.with_unwind += u64::from(unwind);
                totals.without_bytes += u64::from(code.is_without_bytes());
                print(format_args!(
                    "{} {:>16x} {:>8x} {:>8} {lines:>6} {:>6} {}{}",
                    FormattedTime { time: code.timestamp, ticks },
                    code.address,
                    code.size,
                    code.tid,
                    if unwind { "yes" } else { "no" },
                    text::whole(code.name),
                    annotations(&code, ticks)
                ))?;
            }
            Ok(CodeEvent::Move(moved)) => {
                totals.moves += 1;
                let name = names.get_or_insert_with(|| MoveLine::of(dump)).next_name();
                print(format_args!(
                    "{} {:>16x} {:>8x} {:>8} {:>6} {:>6} {} (moved from {:x})",
                    FormattedTime { time: moved.timestamp, ticks },
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
                print(format_args!("{} (closed)", FormattedTime { time: timestamp, ticks }))?;
            }
        }
    }
    if let Some(ending) = ending(codes.end()) {
        note::warning(input.message(ending));
    }
    let left_out = codes.left_out();
    if left_out.count > 0 {
        note::warning(input.message(format_args!(
            "{} codes are missing because the log was full, from {} to {}",
            left_out.count,
            FormattedTime { time: left_out.first, ticks },
            FormattedTime { time: left_out.last, ticks },
        )));
    }
    let without_bytes = if totals.without_bytes > 0 {
        format!(", {} without bytes", totals.without_bytes)
    } else {
        String::new()
    };
    note::say(format_args!(
        "{}: {} loads ({} with lines, {} with unwind tables{without_bytes}), {} moves",
        text::path(input.name()),
        totals.loads,
        totals.with_lines,
        totals.with_unwind,
        totals.moves
    ));
    Ok(())
}

/// The names of moved codes, in file order. Which code a move refers to depends on all events with earlier
/// timestamps, which may come later in the file. Therefore the dump is read a second time at the first move. Few
/// dumps have moves.
struct MoveLine<'a> {
    history: History<&'a [u8]>,
    moves: std::vec::IntoIter<MoveId>,
}

impl<'a> MoveLine<'a> {
    fn of(dump: &Dump<'a>) -> Self {
        let mut history = HistoryBuilder::new();
        let mut events = DumpEvents::new(&mut history);
        let codes = dump.codes().flatten();
        let moves: Vec<MoveId> =
            codes.filter_map(|event| events.take(event, |load| load.name)).collect();
        events.finish();
        let history = history.finish(&Processes::new(), 0);
        Self { history, moves: moves.into_iter() }
    }

    /// The name of the code that the next move refers to.
    fn next_name(&mut self) -> Option<&'a [u8]> {
        let code = self.history.moved(self.moves.next()?)?;
        Some(self.history.code(code).origin)
    }
}

#[derive(Default)]
struct Totals {
    loads: u64,
    with_lines: u64,
    with_unwind: u64,
    without_bytes: u64,
    moves: u64,
}

/// Facts that only dumps of this project have and that have no column, in brackets after the name.
fn annotations(code: &CodeLoad<'_>, ticks: bool) -> String {
    if code.tail().is_none() {
        return String::new();
    }
    let mut notes = vec![code.kind().to_string()];
    notes.extend(code.tier().map(|tier| text::whole(tier).to_string()));
    let count = |number: usize, what: &str| (number > 0).then(|| format!("{number} {what}"));
    notes.extend(count(code.ir_lines().count(), "IR lines"));
    notes.extend(count(code.inlined().count(), "calls inlined"));
    let died = code.died().map(|time| FormattedTime { time, ticks }.to_string());
    notes.extend(died.map(|died| format!("died at {}", died.trim_start())));
    format!(" [{}]", notes.join(", "))
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
                note::warning(input.message(error));
            }
        }
    }
    note::say(format_args!(
        "{}: {entries} entries, {unreadable} unreadable lines",
        text::path(input.name())
    ));
    Ok(())
}
