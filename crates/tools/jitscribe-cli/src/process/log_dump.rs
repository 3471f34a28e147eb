//! Converts a log to a jitdump for other tools: standard records, with the code bytes that are still in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use code_log::{Budget, Head, Source};
use jitdump::extension::LeftOut;
use jitdump::{CodeEvent, CodeLoad, Dump, Writer, WriterConfig};

use crate::foreign::{Progress, Reservation};

/// Code larger than this is not copied from memory: no compiler generates such code, so the log must be damaged.
const LARGEST: usize = 64 << 20;

/// The most bytes of code that are copied from a process's memory, counting each address once. The logs of a process share them.
const FETCHED: u64 = 512 << 20;
/// The same for addresses that were already copied for a later code. The bytes there now belong to the later code: the earlier
/// code has most often been freed without an announcement.
const FETCHED_AGAIN: u64 = 32 << 20;

/// A jitdump converted from a log.
#[derive(Debug)]
pub struct LogDump {
    /// The jitdump.
    pub bytes: Vec<u8>,
    /// Number of codes in it.
    pub codes: u64,
    /// Number of live codes.
    pub alive: u64,
    /// Number of codes without bytes: dead or unreadable.
    pub without_bytes: u64,
    /// Number of live codes whose bytes were not read because of the limits.
    pub over_budget: u64,
    /// Number of chunks of the log that could not be read.
    pub torn: u64,
    /// Whether the log has more codes than the limit allows.
    pub is_cut: bool,
    /// The head of the log.
    pub head: Head,
    /// Accounts for the bytes of the jitdump for as long as they are kept.
    #[expect(dead_code, reason = "dropping it is all there is to do with it")]
    pub held: Reservation,
}

/// A source of the bytes of live code.
pub trait CodeBytes {
    /// The bytes at these addresses, if all are available.
    fn code_bytes(&self, range: Range<u64>) -> Option<Vec<u8>>;
}

/// A buffer for the code at these addresses, unless the code is larger than any compiler generates.
pub fn code_buffer(range: &Range<u64>) -> Option<Vec<u8>> {
    let size = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    (size <= LARGEST).then(|| vec![0; size])
}

/// Data that the log itself does not have, and limits.
#[derive(Clone, Copy, Default)]
pub struct DumpContext<'a> {
    /// The process's memory, for code that is in the log without bytes.
    pub memory: Option<&'a dyn CodeBytes>,
    /// The number of logs that share the limit for bytes read from that memory; 0 counts as one.
    pub sharing: u64,
    /// For a log inherited from another process: later codes do not belong to this process.
    pub until: Option<u64>,
    /// How much of the log is read.
    pub budget: Budget,
    /// An earlier dump of the log: it has codes that have left the log since, and bytes of codes that are dead now.
    pub earlier: Option<&'a [u8]>,
    /// Receives progress reports.
    pub progress: Option<&'a Progress<'a>>,
}

/// Converts the log of a process to a jitdump.
pub fn dump_of(source: &impl Source, context: DumpContext<'_>) -> Result<LogDump, code_log::Error> {
    let snapshot = code_log::snapshot_within(source, context.budget)?;
    let mut result = LogDump {
        bytes: Vec::new(),
        codes: 0,
        alive: 0,
        without_bytes: 0,
        over_budget: 0,
        torn: snapshot.torn,
        is_cut: snapshot.is_cut,
        head: snapshot.head,
        held: Reservation::default(),
    };
    let damaged = |_| code_log::Error::NotALog("its records are invalid");
    let dump = Dump::parse(&snapshot.bytes).map_err(damaged)?;
    let config = WriterConfig::from(dump.header());
    let failed = |_| code_log::Error::NotALog("it cannot be converted to a jitdump");
    let mut writer = Writer::new(Vec::new(), &config).map_err(failed)?;
    let head = &snapshot.head;
    if head.left_out > 0 {
        let left_out =
            LeftOut { count: head.left_out, first: head.left_out_first, last: head.left_out_last };
        writer.left_out(head.left_out_first, &left_out).map_err(failed)?;
    }
    let earlier = context.earlier.and_then(|earlier| Dump::parse(earlier).ok());
    let mut before: HashMap<Identity, CodeLoad<'_>> = HashMap::new();
    for event in earlier.iter().flat_map(Dump::codes).flatten() {
        if let CodeEvent::Load(code) = event {
            before.insert(identity(&code), code);
        }
    }
    let until = context.until;
    let is_of_process = |code: &CodeLoad<'_>| until.is_none_or(|until| code.timestamp <= until);
    // Code that died in the parent after the fork is still alive in the child.
    let is_alive = |code: &CodeLoad<'_>| {
        code.died().is_none_or(|died| until.is_some_and(|until| died > until))
    };
    let fetched = match context.memory {
        Some(_) => {
            let codes = dump.codes().filter_map(|event| match event {
                Ok(CodeEvent::Load(code)) => Some(code),
                _ => None,
            });
            let codes = codes
                .filter(|code| code.is_without_bytes() && is_of_process(code) && is_alive(code));
            fetchable(codes.map(|code| code.address..code.end()).collect(), context.sharing)
        }
        None => Vec::new(),
    };
    let mut fetched = fetched.into_iter();
    // If the format cannot represent a name or a file, only that code is lost.
    let mut over_budget = 0;
    let mut write = |code: &CodeLoad<'_>, bytes: Option<&[u8]>| {
        result.codes += 1;
        result.alive += u64::from(is_alive(code));
        result.without_bytes += u64::from(bytes.is_none() && code.is_without_bytes());
        let died = code.died().filter(|_| !is_alive(code));
        let _ = writer.code_as(code, bytes, died, code.index);
    };
    for event in dump.codes() {
        let Ok(CodeEvent::Load(code)) = event else { continue };
        if let Some(progress) = context.progress {
            progress.report();
        }
        if !is_of_process(&code) {
            continue;
        }
        let earlier_code = before.remove(&identity(&code));
        if !code.is_without_bytes() {
            write(&code, None);
            continue;
        }
        let earlier_code = earlier_code
            .as_ref()
            .filter(|earlier_code| !earlier_code.is_without_bytes())
            .map(|earlier_code| earlier_code.bytes);
        let memory = context.memory.filter(|_| is_alive(&code));
        let bytes = match memory.map(|memory| (memory, fetched.next())) {
            Some((memory, Some(true))) => fetch(&code, memory),
            Some(_) => {
                over_budget += u64::from(earlier_code.is_none());
                None
            }
            None => None,
        };
        write(&code, bytes.as_deref().or(earlier_code));
    }
    let mut gone: Vec<_> = before.into_values().collect();
    gone.sort_by_key(|code| (code.timestamp, code.index));
    for code in &gone {
        write(code, None);
    }
    result.bytes = writer.into_sink();
    result.over_budget = over_budget;
    Ok(result)
}

/// Which of these codes, given in the order of their times, are read from memory: each address once, for the last code at it,
/// and a limited number of bytes for earlier codes. This bounds the bytes read, however many codes the log claims.
fn fetchable(codes: Vec<Range<u64>>, sharing: u64) -> Vec<bool> {
    let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut once, mut again) = (FETCHED / sharing.max(1), FETCHED_AGAIN / sharing.max(1));
    let mut fetched: Vec<bool> = Vec::with_capacity(codes.len());
    for code in codes.iter().rev() {
        let is_taken =
            taken.range(..code.end).next_back().is_some_and(|(_, end)| *end > code.start);
        let left = if is_taken { &mut again } else { &mut once };
        let rest = left.checked_sub(code.end.saturating_sub(code.start));
        fetched.push(rest.is_some());
        let Some(rest) = rest else { continue };
        *left = rest;
        if !is_taken && !code.is_empty() {
            taken.insert(code.start, code.end);
        }
    }
    fetched.reverse();
    fetched
}

/// The identity of a code within its process. Indices are unique, except across forks.
type Identity = (u64, u64);

fn identity(code: &CodeLoad<'_>) -> Identity {
    (code.index, code.timestamp)
}

fn fetch(code: &CodeLoad<'_>, memory: &dyn CodeBytes) -> Option<Vec<u8>> {
    memory.code_bytes(code.address..code.address.checked_add(code.size)?)
}

/// Merges several logs of one process with the same clock into one dump: two copies of the library keep one log each. Codes of
/// different logs get different indices.
pub fn merge(all: Vec<LogDump>) -> Option<LogDump> {
    let mut all = all.into_iter();
    let mut first = all.next()?;
    let rest: Vec<LogDump> = all.collect();
    if rest.is_empty() {
        return Some(first);
    }
    let merged = {
        let dumps = std::iter::once(&first).chain(&rest);
        merge_dumps(&dumps.map(|dump| dump.bytes.as_slice()).collect::<Vec<_>>())?
    };
    first.bytes = merged;
    for dump in rest {
        first.codes += dump.codes;
        first.alive += dump.alive;
        first.without_bytes += dump.without_bytes;
        first.over_budget += dump.over_budget;
        first.torn += dump.torn;
        first.is_cut |= dump.is_cut;
    }
    Some(first)
}

/// Merges dumps of one process with the same clock. Codes of different dumps get different indices.
pub fn merge_dumps(all: &[&[u8]]) -> Option<Vec<u8>> {
    merge_those(all, |_, _| true)
}

/// Adds to the codes that a runtime has announced those that it has registered with debuggers elsewhere, or at other times.
pub fn merge_registered(announced: &[u8], registered: &[u8]) -> Option<Vec<u8>> {
    let known = Dump::parse(announced).ok()?;
    let known = Announced::of([&known]);
    merge_those(&[announced, registered], |dump, code| dump == 0 || !known.hide(code, code.died()))
}

/// Merges the codes for which `are_meant`, given the number of their dump, says so.
fn merge_those(all: &[&[u8]], are_meant: impl Fn(usize, &CodeLoad<'_>) -> bool) -> Option<Vec<u8>> {
    let dumps: Vec<_> = all.iter().filter_map(|bytes| Dump::parse(bytes).ok()).collect();
    let config = WriterConfig::from(dumps.first()?.header());
    let mut writer = Writer::new(Vec::new(), &config).ok()?;
    let mut left_out = LeftOut { count: 0, first: u64::MAX, last: 0 };
    let mut codes = Vec::new();
    let mut offset = 0_u64;
    for (number, dump) in dumps.iter().enumerate() {
        let mut largest = 0;
        let mut events = dump.codes();
        for event in events.by_ref().flatten() {
            if let CodeEvent::Load(code) = event {
                largest = code.index.max(largest);
                let index = code.index.saturating_add(offset);
                if are_meant(number, &code) {
                    codes.push((code.timestamp, index, code));
                }
            }
        }
        offset = offset.saturating_add(largest).saturating_add(1);
        let more = events.left_out();
        if more.count > 0 {
            left_out.count = left_out.count.saturating_add(more.count);
            left_out.first = left_out.first.min(more.first);
            left_out.last = left_out.last.max(more.last);
        }
    }
    codes.sort_by_key(|(time, index, _)| (*time, *index));
    if left_out.count > 0 {
        writer.left_out(left_out.first, &left_out).ok()?;
    }
    for (_, index, code) in &codes {
        let _ = writer.code_as(code, None, code.died(), *index);
    }
    Some(writer.into_sink())
}

/// Codes that a runtime has announced: it says more of them than what it registers with debuggers.
#[derive(Debug)]
pub struct Announced<'a> {
    /// By address.
    codes: Vec<CodeLoad<'a>>,
    /// The largest end of all codes up to each.
    ends: Vec<u64>,
}

impl<'a> Announced<'a> {
    /// Those in these dumps of one process.
    pub fn of<'d>(dumps: impl IntoIterator<Item = &'d Dump<'a>>) -> Self
    where
        'a: 'd,
    {
        let codes = dumps.into_iter().flat_map(Dump::codes).flatten().filter_map(loaded);
        let mut codes: Vec<CodeLoad<'a>> = codes.collect();
        codes.sort_by_key(|code| code.address);
        let ends = codes.iter().scan(0, |end, code| {
            *end = code.end().max(*end);
            Some(*end)
        });
        let ends = ends.collect();
        Self { codes, ends }
    }

    /// Whether one of them was where this code was, while that was alive. Codes at one address at different times are different codes.
    pub fn hide(&self, code: &CodeLoad<'_>, died: Option<u64>) -> bool {
        let behind = self.codes.partition_point(|other| other.address < code.end());
        let before = self.codes.iter().zip(&self.ends).take(behind).rev();
        let mut near = before.take_while(|(_, end)| **end > code.address).take(NEAR);
        near.any(|(other, _)| {
            let begins_in_time = other.died().is_none_or(|died| code.timestamp < died);
            let ends_in_time = died.is_none_or(|died| other.timestamp < died);
            other.end() > code.address && begins_in_time && ends_in_time
        })
    }
}

/// How many codes before an address are compared with one at it. More of them overlap only if a process misleads.
const NEAR: usize = 256;

fn loaded(event: CodeEvent<'_>) -> Option<CodeLoad<'_>> {
    match event {
        CodeEvent::Load(code) => Some(code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jitdump::{Endian, ExtendedCode};

    use super::*;

    #[test]
    fn what_is_announced_hides_what_is_registered_there_at_that_time() {
        let dump = |codes: &[(u64, usize, u64, Option<u64>)]| {
            let endian = Endian::NATIVE;
            let config = WriterConfig { endian, machine: 62, pid: 1, timestamp: 1, flags: 0 };
            let mut writer = Writer::new(Vec::new(), &config).expect("a dump");
            for (number, &(address, size, timestamp, died)) in codes.iter().enumerate() {
                let name = format!("f{number}");
                let done = writer.extended(&ExtendedCode {
                    timestamp,
                    died,
                    address,
                    index: number as u64,
                    name: name.as_bytes(),
                    bytes: Some(&vec![0x90; size]),
                    ..ExtendedCode::default()
                });
                done.expect("a code");
            }
            writer.into_sink()
        };
        let announced = dump(&[
            (0x1000, 0x1000, 5, None),
            (0x1800, 0x10, 6, None),
            (0x3000, 0x100, 5, Some(9)),
        ]);
        let registered = dump(&[
            (0x1f00, 0x80, 1, None),     // within a code that begins before a smaller one
            (0x3080, 0x100, 8, None),    // alive together for a moment
            (0x3000, 0x100, 9, None),    // later
            (0x3000, 0x100, 1, Some(5)), // before
            (0x2000, 0x100, 7, None),    // beside
        ]);
        let both = merge_registered(&announced, &registered).expect("a dump");
        let both = Dump::parse(&both).expect("a dump");
        let codes = both.codes().flatten().filter_map(loaded);
        let mut found: Vec<_> = codes.map(|code| (code.address, code.timestamp)).collect();
        found.sort_unstable();
        let announced = [(0x1000, 5), (0x1800, 6), (0x3000, 5)];
        let mut expected = [&announced[..], &[(0x3000, 9), (0x3000, 1), (0x2000, 7)]].concat();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_address_is_fetched_once_for_its_last_code() {
        let large = 20 << 20;
        let overlapping = (0..100).map(|number| number * 4096..number * 4096 + large);
        let fetched = fetchable(overlapping.collect(), 1);
        // The last one, and one of those that overlap it.
        assert_eq!(fetched.iter().filter(|fetched| **fetched).count(), 2);
        assert!(fetched[99] && fetched[98]);

        let apart = (0..100).map(|number| number * large..(number + 1) * large);
        let count = |fetched: Vec<bool>| fetched.into_iter().filter(|fetched| *fetched).count();
        assert_eq!(count(fetchable(apart.clone().collect(), 1)), 25);
        // Logs of one process share what is fetched from it.
        assert_eq!(count(fetchable(apart.collect(), 5)), 5);

        // Code that came again and again to the same place, as it does where nobody says that it goes.
        let small = (0..1000).map(|_| 0x1000..0x1100);
        assert!(fetchable(small.collect(), 1).iter().all(|fetched| *fetched));
        assert!(fetchable(Vec::new(), 0).is_empty());
    }
}
