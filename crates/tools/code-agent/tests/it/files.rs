//! The table of processes, with perf maps and jitdumps.

use code_agent::protocol::{Address, Resolved, ResolvedCode, Unknown};
use code_agent::{
    FileIdentity, FileKind, FilePart, FileReading, FileStatus, Limits, ProcessKey, Processes,
};
use jitdump::extension::Kind;
use jitdump::{
    CodeEvent, Dump, Endian, ExtendedCode, FLAG_ARCH_TIMESTAMP, Inlined, LineEntry, Move, Writer,
    WriterConfig,
};
use jitscribe::{Code, Scribe};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::common::{KEY, ROOT, Whole, facts, found};

/// When the tests read and ask: later than all times in the dumps.
const NOW: u64 = 1_000_000_000_000;

/// The symbol is the name as the file has it, the function what it says.
#[test]
fn the_name_of_the_file_is_kept_beside_the_function() {
    let mut table = table();
    let map = "1000 10 JS:*spin /a/spin.js:1:14\n2000 10 main\n3000 10 JS:hot-1-liftoff\n";
    Growing::new(FileKind::PerfMap, map).read_all(&mut table, KEY, 0, map.len());
    for (address, symbol, function) in [
        (0x1000, "JS:*spin /a/spin.js:1:14", "spin"),
        (0x2000, "main", "main"),
        (0x3000, "JS:hot-1-liftoff", "hot"),
    ] {
        let code = at(&mut table, address, None).expect("a code");
        assert_eq!((&*code.symbol, &*code.frames[0].function), (symbol, function));
    }
}

fn table() -> Processes<Whole> {
    Processes::new(Limits::default())
}

/// A file, as the worker that reads it would.
struct Growing {
    kind: FileKind,
    inode: u64,
    bytes: Vec<u8>,
}

impl Growing {
    fn new(kind: FileKind, bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind, inode: 1, bytes: bytes.into() }
    }

    /// What a reading of at most `most` bytes finds. The worker's own rules are tested where it is.
    fn read(&self, table: &Processes<Whole>, key: ProcessKey, most: usize) -> FileReading {
        let path = b"/tmp/file".to_vec();
        let identity = FileIdentity { device: 1, inode: self.inode, created: (0, 0) };
        let status = FileStatus { identity, size: self.bytes.len() as u64, modified: (0, 0) };
        let known = table.known_files(key).into_iter().find(|known| known.kind == self.kind);
        let from = known.filter(|known| known.status.identity == identity).map_or(0, |known| {
            let last = known.last.as_slice();
            let before = self.bytes.get(..known.offset as usize).expect("not truncated");
            assert!(before.ends_with(last) && (before.is_empty() || !last.is_empty()));
            known.offset
        });
        let rest = &self.bytes[from as usize..];
        let bytes = rest[..most.min(rest.len())].to_vec();
        FileReading { kind: self.kind, path, part: Some(FilePart { status, from, bytes }) }
    }

    /// Reads it to its end in pieces.
    fn read_all(&self, table: &mut Processes<Whole>, key: ProcessKey, owner: u32, most: usize) {
        loop {
            let reading = self.read(table, key, most);
            if !table.files_read(key, facts(owner), &[reading], true, NOW) {
                return;
            }
        }
    }
}

fn resolve(table: &mut Processes<Whole>, asked: &[(u64, Option<u64>)]) -> Vec<Resolved> {
    let address = |&(address, time): &(u64, Option<u64>)| Address {
        pid: KEY.pid,
        start: Some(KEY.start),
        address,
        time,
    };
    let asked: Vec<Address> = asked.iter().map(address).collect();
    table.resolve(ROOT, &asked, NOW)
}

fn at(table: &mut Processes<Whole>, address: u64, time: Option<u64>) -> Option<ResolvedCode> {
    match resolve(table, &[(address, time)]).remove(0) {
        Resolved::Code(code) => Some(*code),
        Resolved::Unknown(Unknown::Code | Unknown::Process) => None,
        Resolved::Unknown(Unknown::Description) => panic!("a description is gone"),
    }
}

fn name_at(table: &mut Processes<Whole>, address: u64, time: Option<u64>) -> String {
    at(table, address, time)
        .map(|code| code.frames.last().expect("a frame").function.clone())
        .unwrap_or_default()
}

const CONFIG: WriterConfig =
    WriterConfig { endian: Endian::NATIVE, machine: 62, pid: 7, timestamp: 1, flags: 0 };

fn dump(config: &WriterConfig) -> Writer<Vec<u8>> {
    Writer::new(Vec::new(), config).expect("a header")
}

fn extended<'a>(address: u64, timestamp: u64, name: &'a str) -> ExtendedCode<'a> {
    ExtendedCode {
        timestamp,
        pid: 7,
        tid: 7,
        address,
        size: 16,
        index: timestamp,
        name: name.as_bytes(),
        bytes: Some(&[0xcc; 16]),
        kind: Kind::Function,
        tier: Some(b"baseline"),
        ..ExtendedCode::default()
    }
}

/// A dump of these codes.
fn dump_of<'a>(codes: impl IntoIterator<Item = ExtendedCode<'a>>) -> Vec<u8> {
    let mut writer = dump(&CONFIG);
    for code in codes {
        writer.extended(&code).expect("written");
    }
    writer.into_sink()
}

fn map(text: impl Into<Vec<u8>>) -> Growing {
    Growing::new(FileKind::PerfMap, text)
}

#[test]
fn a_dump_has_times_lines_inlined_calls_and_generations() {
    let line = |address, line| LineEntry { address, file: b"/src/a.lang", line, column: 0 };
    let lines = [line(0x1000, 5), line(0x1008, 6)];
    let inlined = [Inlined {
        name: b"max",
        file: b"/src/a.lang",
        line: 9,
        ranges: std::iter::once(0x1008..0x1010).collect(),
        ..Inlined::default()
    }];
    let mut writer = dump(&CONFIG);
    let first = ExtendedCode { lines: &lines, inlined: &inlined, ..extended(0x1000, 100, "fib") };
    writer.extended(&first).expect("written");
    writer.extended(&extended(0x1000, 200, "other")).expect("written");
    writer.extended(&extended(0x2000, 300, "fib")).expect("written");
    let moved = Move {
        pid: 7,
        tid: 7,
        vma: 0x3000,
        old_code_addr: 0x2000,
        new_code_addr: 0x3000,
        code_size: 16,
        code_index: 300,
    };
    writer.move_code(400, &moved).expect("written");
    let file = Growing::new(FileKind::Jitdump, writer.into_sink());
    for most in [1 << 20, 100, 7] {
        let mut table = table();
        // Pieces smaller than what a reading needs to go on: the worker reads whole megabytes.
        for end in (0..file.bytes.len()).step_by(most).chain([file.bytes.len()]) {
            let part = Growing::new(FileKind::Jitdump, &file.bytes[..end]);
            part.read_all(&mut table, KEY, 1000, 1 << 20);
        }
        let code = at(&mut table, 0x1009, Some(150)).expect("the first");
        let frames: Vec<_> = code
            .frames
            .iter()
            .map(|frame| (frame.function.as_str(), frame.line, frame.inlined))
            .collect();
        assert_eq!(frames, [("max", 6, true), ("fib", 9, false)]);
        assert_eq!((code.loaded, code.unloaded, code.generation), (Some(100), None, 1));
        assert_eq!((code.address, code.size), (0x1000, 16));
        assert_eq!((code.kind.as_str(), code.tier.as_deref()), ("function", Some("baseline")));
        // Before it was written, it is named, as nothing else was there.
        assert_eq!(name_at(&mut table, 0x1000, Some(1)), "fib");
        assert_eq!(name_at(&mut table, 0x1000, Some(200)), "other");
        assert_eq!(name_at(&mut table, 0x1000, None), "other");
        // What was moved.
        let before = at(&mut table, 0x2004, Some(399)).expect("the second of this name");
        assert_eq!((before.generation, before.unloaded), (2, Some(400)));
        assert_eq!(at(&mut table, 0x2004, Some(400)), None);
        let after = at(&mut table, 0x3004, Some(400)).expect("where it was moved to");
        assert_eq!((after.address, after.generation, after.loaded), (0x3000, 2, Some(400)));
        let sources = table.list(ROOT).remove(0).sources;
        assert_eq!((sources[0].kind.as_str(), sources[0].codes), ("jitdump", 4));
    }
}

#[test]
fn times_of_another_clock_are_not_compared() {
    let ticks = WriterConfig { flags: FLAG_ARCH_TIMESTAMP, ..CONFIG };
    // Wall-clock time in a dump that does not say so.
    for (config, first) in [(ticks, 5), (CONFIG, 1_700_000_000_000_000_000)] {
        let mut writer = dump(&config);
        writer.extended(&extended(0x1000, first, "first")).expect("written");
        writer.extended(&extended(0x1000, first + 1, "second")).expect("written");
        let file = Growing::new(FileKind::Jitdump, writer.into_sink());
        let mut table = table();
        file.read_all(&mut table, KEY, 1000, 1 << 20);
        let code = at(&mut table, 0x1000, Some(2)).expect("as of now");
        assert_eq!((code.frames[0].function.as_str(), code.loaded), ("second", None));
    }
}

#[test]
fn a_map_has_names_and_generations_and_a_dump_comes_first() {
    let mut table = table();
    let file = map("1000 10 a\n1000 10 b\n2000 10 a\nnonsense\n5000");
    file.read_all(&mut table, KEY, 1000, 1 << 20);
    let code = at(&mut table, 0x1008, Some(5)).expect("the last line");
    assert_eq!((code.frames[0].function.as_str(), code.generation), ("b", 1));
    assert_eq!((code.loaded, code.unloaded, code.kind.as_str()), (None, None, "function"));
    assert_eq!(at(&mut table, 0x2000, None).expect("known").generation, 2);
    // A line that is being written.
    assert_eq!(at(&mut table, 0x5000, None), None);
    let file = map([&file.bytes[..], b" 10 c\n"].concat());
    let dump = Growing::new(FileKind::Jitdump, dump_of([extended(0x1000, 100, "of the dump")]));
    let readings = [file.read(&table, KEY, 1 << 20), dump.read(&table, KEY, 1 << 20)];
    assert!(!table.files_read(KEY, facts(1000), &readings, true, NOW));
    assert_eq!(name_at(&mut table, 0x5000, None), "c");
    assert_eq!(name_at(&mut table, 0x1000, None), "of the dump");
    assert_eq!(name_at(&mut table, 0x2000, None), "a");
    let kinds: Vec<String> =
        table.list(ROOT)[0].sources.iter().map(|source| source.kind.clone()).collect();
    assert_eq!(kinds, ["jitdump", "perf-map"]);
    // The process runs another program, which has mapped no dump.
    let gone = FileReading { part: None, ..file.read(&table, KEY, 0) };
    assert!(!table.files_read(KEY, facts(1000), &[gone], true, NOW));
    assert_eq!(name_at(&mut table, 0x1000, None), "b");
    table.forget_files(KEY);
    assert_eq!(table.list(ROOT), []);
    assert_eq!((table.gauges().codes, table.gauges().file_bytes), (0, 0));
}

#[test]
fn a_file_that_was_written_again_has_none_of_what_it_had() {
    let mut table = table();
    let mut file = map("1000 10 a\n2000 10 b\n3000 1");
    file.read_all(&mut table, KEY, 1000, 1 << 20);
    file.inode = 2;
    file.bytes = b"2000 10 c\n".to_vec();
    file.read_all(&mut table, KEY, 1000, 1 << 20);
    assert_eq!(name_at(&mut table, 0x1000, None), "");
    assert_eq!(name_at(&mut table, 0x2000, None), "c");
    assert_eq!(at(&mut table, 0x2000, None).expect("known").generation, 1);
    assert_eq!(table.gauges().codes, 1);
}

#[test]
fn the_code_log_wins() {
    let scribe = Scribe::builder().build();
    let mut table = table();
    table.found(KEY, facts(1000), found(&scribe));
    let file = map("1000 10 in the map\n");
    // A log without code has nothing to say.
    assert!(table.wants_files(KEY));
    file.read_all(&mut table, KEY, 1000, 1 << 20);
    assert_eq!(name_at(&mut table, 0x1000, None), "in the map");
    let _code = scribe.load(&Code::at(0x1000, 16).named("in the log"));
    assert_eq!(name_at(&mut table, 0x1000, None), "in the log");
    assert!(!table.wants_files(KEY));
    file.read_all(&mut table, KEY, 1000, 1 << 20);
    assert_eq!(table.list(ROOT)[0].sources.len(), 1);
    assert_eq!(table.gauges().codes, 1);
}

/// The most that a table may have: what its limit says, and what a reading adds before it is found to be too much.
fn assert_bounded(table: &Processes<Whole>, limits: &Limits) {
    let gauges = table.gauges();
    assert!(gauges.file_bytes <= limits.file_bytes + (2 << 20), "{gauges:?}");
    assert!(gauges.codes <= limits.codes, "{gauges:?}");
}

#[test]
fn what_a_process_claims_is_bounded() {
    let limits = Limits {
        file_bytes: 4 << 20,
        file_bytes_of_process: 1 << 20,
        codes_of_process: 3000,
        ..Limits::default()
    };
    let mut table = Processes::new(limits);
    // One line covers everything; others replace each other for ever.
    let lines: String = (0..200_000).map(|n| format!("{:x} 10 name {n}\n", n % 7 * 16)).collect();
    let file = map(format!("0 ffffffffffffffff all\n{lines}"));
    file.read_all(&mut table, KEY, 1000, 1 << 20);
    assert_bounded(&table, &limits);
    assert_eq!(name_at(&mut table, 0x10, None), format!("name {}", 199_999 - 199_999 % 7 + 1));
    assert_eq!(name_at(&mut table, u64::MAX - 1, None), "all");
    // More than there is space for: the first are kept.
    let lines: String = (1..9000).map(|n| format!("{n:x}0 10 {n:0100}\n")).collect();
    let other = ProcessKey { pid: 1, start: 1 };
    map(lines).read_all(&mut table, other, 0, 1 << 20);
    let gauges = table.gauges();
    assert!(gauges.codes_left_out >= 5999, "{gauges:?}");
    assert_bounded(&table, &limits);
    // A user other than root gets a quarter, whatever the number of processes.
    for pid in 100..200 {
        let key = ProcessKey { pid, start: 1 };
        let lines: String = (1..900).map(|n| format!("{n:x}0 10 {n:0500}\n")).collect();
        map(lines).read_all(&mut table, key, 1000, 1 << 20);
    }
    let infos = table.list(ROOT);
    let of_user = infos.iter().filter(|info| info.user == 1000);
    let codes: u64 = of_user.flat_map(|info| &info.sources).map(|source| source.codes).sum();
    assert!(codes * 500 < limits.file_bytes / 4 + (1 << 20), "{codes}");
    assert_bounded(&table, &limits);
}

#[test]
fn a_record_without_end_is_given_up() {
    let mut bytes = dump(&CONFIG).into_sink();
    // A LOAD of four gigabytes.
    for word in [0_u32, u32::MAX - 7, 1, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.resize(40 << 20, 1);
    let file = Growing::new(FileKind::Jitdump, bytes);
    let mut table = table();
    file.read_all(&mut table, KEY, 1000, 1 << 20);
    assert!(table.known_files(KEY)[0].is_ignored);
    assert!(table.gauges().file_bytes < 1 << 20, "{:?}", table.gauges());
}

/// A line of a map, of codes that overlap.
fn line() -> impl Strategy<Value = String> {
    (0u64..40, 0u64..6, 0u8..4)
        .prop_map(|(at, size, name)| format!("{:x} {:x} name {name}\n", at * 8, size * 8))
}

/// At each address there is what perf reads of a map.
fn expect_as_perf_reads(
    table: &mut Processes<Whole>,
    text: &str,
    addresses: std::ops::Range<u64>,
) -> TestCaseResult {
    let pieces = perf_map::resolve(perf_map::entries(text.as_bytes()).flatten());
    let asked: Vec<_> = addresses.map(|address| (address, None)).collect();
    for ((address, _), answer) in asked.iter().zip(resolve(table, &asked)) {
        let expected = perf_map::find(&pieces, *address).map(|piece| {
            let entry = piece.entry;
            (String::from_utf8_lossy(entry.name).into_owned(), entry.address, entry.size)
        });
        let found = match answer {
            Resolved::Code(code) => {
                Some((code.frames[0].function.clone(), code.address, code.size))
            }
            Resolved::Unknown(_) => None,
        };
        prop_assert_eq!(found, expected, "{:#x}", address);
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_map_is_answered_as_perf_reads_it(
        lines in prop::collection::vec(line(), 0..60),
        most in 1usize..500,
    ) {
        let text = lines.concat();
        let file = map(text.clone());
        let mut table = table();
        file.read_all(&mut table, KEY, 1000, most);
        expect_as_perf_reads(&mut table, &text, 0..400)?;
    }

    #[test]
    fn a_map_of_which_covered_lines_are_removed_answers_the_same(
        seed in prop::collection::vec((0u64..4000, 1u64..40), 1200..2500),
    ) {
        let line = |(n, (at, size)): (usize, &(u64, u64))| format!("{at:x} {size:x} n{n}\n");
        let text: String = seed.iter().enumerate().map(line).collect();
        let mut table = table();
        map(text.clone()).read_all(&mut table, KEY, 1000, 1 << 20);
        expect_as_perf_reads(&mut table, &text, 0..4040)?;
    }

    #[test]
    fn a_dump_is_answered_as_it_reads(
        codes in prop::collection::vec((0u64..30, 0u8..4), 1..40),
        most in 200usize..5000,
        asked in prop::collection::vec((0u64..600, 0u64..50), 1..50),
    ) {
        let names = [0, 1, 2, 3].map(|name| format!("name {name}"));
        let code = |(time, (place, name)): (u64, &(u64, u8))| extended(place * 16, time, &names[usize::from(*name)]);
        let bytes = dump_of((1..).zip(&codes).map(code));
        let mut table = table();
        Growing::new(FileKind::Jitdump, bytes.clone()).read_all(&mut table, KEY, 1000, most);
        for (address, time) in asked {
            let dump = Dump::parse(&bytes).unwrap();
            let all: Vec<_> = dump
                .codes()
                .filter_map(|event| match event.unwrap() {
                    CodeEvent::Load(code) => Some(code),
                    _ => None,
                })
                .collect();
            let here = |code: &&jitdump::CodeLoad<'_>| {
                (code.address..code.end()).contains(&address)
            };
            let last = all.iter().filter(here).rfind(|code| code.timestamp <= time);
            let expected = last.or_else(|| all.iter().find(here));
            let expected = expected.map(|code| {
                let same = all.iter().filter(|it| it.name == code.name);
                let generation = same.filter(|it| it.timestamp <= code.timestamp).count() as u64;
                (String::from_utf8_lossy(code.name).into_owned(), code.timestamp, generation)
            });
            let found = at(&mut table, address, Some(time)).map(|code| {
                (code.frames[0].function.clone(), code.loaded.unwrap(), code.generation)
            });
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn any_bytes_are_survived(
        damage in prop::collection::vec((0usize..4000, any::<u8>()), 0..60),
        has_header in any::<bool>(),
        most in 1usize..3000,
        ends in prop::collection::vec(0usize..4000, 1..8),
    ) {
        let mut bytes = dump_of((1..20).map(|time| extended(time * 16, time, "name")));
        for (at, byte) in damage {
            let at = if has_header { at + 40 } else { at };
            if let Some(hit) = bytes.get_mut(at) {
                *hit = byte;
            }
        }
        for kind in [FileKind::Jitdump, FileKind::PerfMap] {
            let mut table = table();
            let mut ends = ends.clone();
            ends.sort_unstable();
            for end in ends {
                let part = bytes.get(..end).unwrap_or(&bytes);
                Growing::new(kind, part).read_all(&mut table, KEY, 1000, most);
                let asked: Vec<_> = (0..400).map(|address| (address, Some(7))).collect();
                prop_assert_eq!(resolve(&mut table, &asked).len(), 400);
                assert_bounded(&table, &Limits::default());
            }
        }
    }
}
