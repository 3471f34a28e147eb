//! The table of processes, with logs that the library writes.

use code_agent::access::Peer;
use code_agent::protocol::{
    Address, Ask, Content, Request, Resolved, ResolvedCode, Unknown, VERSION,
};
use code_agent::{Limits, ProcessKey, Processes};
use code_log::{Budget, snapshot_within};
use code_timeline::{CodeId, TimelineBuilder};
use jitdump::{CodeEvent, CodeLoad, Dump};
use jitscribe::{Code, Line, LoadedCode, Scribe};

use crate::common::{KEY, ROOT, Whole, facts, found};

fn table(scribe: &Scribe, limits: Limits) -> Processes<Whole> {
    let mut table = Processes::new(limits);
    table.found(KEY, facts(1000), found(scribe));
    table
}

fn asked(address: u64, time: Option<u64>) -> Address {
    Address { pid: KEY.pid, start: Some(KEY.start), address, time }
}

/// What is at an address, at `now`: each question is a second later, so that it is answered from another update.
fn at(table: &mut Processes<Whole>, address: u64, now: u64) -> Resolved {
    table.resolve(ROOT, &[asked(address, None)], now).remove(0)
}

fn code(resolved: Resolved) -> ResolvedCode {
    match resolved {
        Resolved::Code(code) => *code,
        Resolved::Unknown(why) => panic!("{why:?}"),
    }
}

#[test]
fn one_user_takes_no_more_descriptors_than_its_share() {
    let scribe = Scribe::builder().build();
    let mut table = Processes::new(Limits { sources: 16, ..Limits::default() });
    let mut add = |pid: u32, owner: u32| {
        let key = ProcessKey { pid, start: 1 };
        table.found(key, facts(owner), found(&scribe));
        table.list(Peer { user: owner, sees_all: false }).iter().map(|it| it.sources.len()).sum()
    };
    let counts: Vec<usize> = (1..=8).map(|pid| add(pid, 1000)).collect();
    assert_eq!(counts, [1, 2, 3, 4, 4, 4, 4, 4]);
    assert_eq!(add(100, 1001), 1);
    assert_eq!((200..230).map(|pid| add(pid, 0)).max(), Some(11));
    assert_eq!(add(300, 1002), 0);
}

/// Times that are later than all of the library's.
fn seconds(count: u64) -> u64 {
    (1 << 62) + count * 1_000_000_000
}

#[test]
fn names_lines_tiers_and_generations() {
    let scribe = Scribe::builder().build();
    let lines = [Line::new(0, "/src/a.lang", 7), Line::new(16, "/src/a.lang", 9)];
    let load = |address: u64, tier: &str| {
        scribe.load(&Code::at(address, 64).named("fib").lines(&lines).tier(tier))
    };
    let first = load(0x1000, "baseline");
    let mut table = table(&scribe, Limits::default());
    let answer = code(at(&mut table, 0x1011, seconds(0)));
    assert_eq!((answer.address, answer.size, answer.generation), (0x1000, 64, 1));
    assert_eq!((answer.tier.as_deref(), answer.kind.as_str()), (Some("baseline"), "function"));
    let [frame] = &*answer.frames else { panic!("{answer:?}") };
    assert_eq!((&*frame.function, &*frame.file, frame.line), ("fib", "/src/a.lang", 9));
    // It is compiled again, elsewhere, and then its first code goes.
    let second = load(0x2000, "optimized");
    let answer = code(at(&mut table, 0x2000, seconds(1)));
    assert_eq!((answer.generation, answer.tier.as_deref()), (2, Some("optimized")));
    drop(first);
    assert_eq!(at(&mut table, 0x1000, seconds(2)), Resolved::Unknown(Unknown::Code));
    assert_eq!(at(&mut table, 0x3000, seconds(2)), Resolved::Unknown(Unknown::Code));
    drop(second);
}

#[test]
fn a_batch_is_answered_as_a_timeline_of_the_whole_log_answers() {
    let scribe = Scribe::builder().build();
    let mut table = table(&scribe, Limits::default());
    let mut alive: Vec<LoadedCode> = Vec::new();
    let mut number = 1_u64;
    for round in 0..6 {
        for _ in 0..400 {
            // Codes of all sizes over few addresses: most of them take the place of others, whole or in part.
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let address = 0x10_0000 + (number >> 40) % 4096 * 16;
            let size = 16 + (number >> 20) % 40 * 16;
            alive.push(scribe.load(&Code::at(address, size).named(&format!("f{}", number % 50))));
            if number >> 62 == 0 && !alive.is_empty() {
                drop(alive.swap_remove(usize::try_from(number >> 30).unwrap() % alive.len()));
            }
        }
        let log = Whole::of(&scribe);
        let snapshot = snapshot_within(&log, Budget::default()).unwrap();
        let codes: Vec<CodeLoad<'_>> = Dump::parse(&snapshot.bytes)
            .unwrap()
            .codes()
            .filter_map(|event| match event.unwrap() {
                CodeEvent::Load(code) => Some(code),
                _ => None,
            })
            .collect();
        assert!(codes.len() > 400 * round);
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (number, code) in codes.iter().enumerate() {
            events.push((code.timestamp, false, number));
            events.extend(code.died().map(|died| (died, true, number)));
        }
        events.sort_unstable();
        let mut timeline = TimelineBuilder::new();
        for (time, is_end, number) in events {
            let (code, id) = (&codes[number], CodeId(u32::try_from(number).unwrap()));
            let range = code.address..code.end();
            if is_end { timeline.unload(time, range, id) } else { timeline.load(time, range, id) }
        }
        let timeline = timeline.finish();
        let times: Vec<u64> = codes.iter().step_by(37).map(|code| code.timestamp).collect();
        let batch: Vec<Address> = (0..2000_u64)
            .map(|n| asked(0x0f_fff0 + n * 37, Some(times[n as usize % times.len()])))
            .collect();
        let answers = table.resolve(ROOT, &batch, seconds(round as u64));
        let mut named = 0;
        for (asked, answer) in batch.iter().zip(answers) {
            let time = asked.time.unwrap();
            let expected = timeline.at(asked.address, time).map(|piece| &codes[piece.code.index()]);
            let is_first = !codes.iter().any(|code| {
                code.timestamp <= time && (code.address..code.end()).contains(&asked.address)
            });
            match (answer, expected) {
                (Resolved::Code(code), Some(expected)) => {
                    named += 1;
                    assert_eq!(
                        (code.address, code.loaded.expect("a time")),
                        (expected.address, expected.timestamp)
                    );
                    assert_eq!(code.frames[0].function.as_bytes(), expected.name);
                    let generation = codes.iter().filter(|other| {
                        other.name == expected.name && other.timestamp <= expected.timestamp
                    });
                    assert_eq!(code.generation, generation.count() as u64);
                }
                // Sampled before its announcement was written.
                (Resolved::Code(code), None) => assert!(is_first && code.loaded > Some(time)),
                (Resolved::Unknown(why), expected) => {
                    assert_eq!((why, expected.map(|code| code.address)), (Unknown::Code, None));
                }
            }
        }
        assert!(named > 200, "{named}");
    }
}

#[test]
fn what_is_read_is_what_has_changed() {
    let scribe = Scribe::builder().build();
    let mut handles: Vec<LoadedCode> = Vec::new();
    let mut load = |count: u64| {
        for _ in 0..count {
            let n = handles.len() as u64;
            handles.push(scribe.load(&Code::at(n << 12, 64).named(&format!("function {n}"))));
        }
    };
    load(10_000);
    let mut table = table(&scribe, Limits::default());
    let mut update = |used: u64, now: u64| {
        let before = table.counts;
        table.update_if_run(KEY, Some(used), seconds(now));
        let counts = table.counts;
        (
            counts.codes_added - before.codes_added,
            counts.chunks_read - before.chunks_read,
            counts.bytes_read - before.bytes_read,
        )
    };
    let (added, chunks, all) = update(1, 0);
    assert_eq!(added, 10_000);
    assert!(chunks > 10 && all > chunks << 16);
    // It has not run since: nothing is read at all.
    assert_eq!(update(1, 10), (0, 0, 0));
    // It has run: of each chunk its head is read, and the beginning of its free space.
    let (added, read, looking) = update(2, 20);
    assert_eq!((added, read), (0, 0));
    assert!(looking <= 256 + chunks * (64 + 36), "{looking} bytes for {chunks} chunks");
    // A hundred codes more: one chunk, or the next one too, and of the first only what was free.
    load(100);
    let (added, read, bytes) = update(3, 30);
    assert_eq!(added, 100);
    assert!((1..=2).contains(&read), "{read} chunks");
    assert!(bytes - looking <= 4 << 16, "{bytes} - {looking}");
    // The cost of one code more does not depend on how many there are.
    load(1);
    let (added, read, bytes) = update(4, 40);
    assert_eq!((added, read), (1, 1));
    assert!(bytes - looking <= 2 << 16, "{bytes} - {looking}");
}

#[test]
fn users_learn_of_their_own_processes_only() {
    let scribe = Scribe::builder().build();
    let _code = scribe.load(&Code::at(0x1000, 64).named("secret"));
    let mut table = table(&scribe, Limits::default());
    let owner = Peer { user: 1000, sees_all: false };
    let other = Peer { user: 1001, sees_all: false };
    let batch = [asked(0x1000, None), Address { pid: 9, start: None, address: 0x1000, time: None }];
    // The process of another user is answered exactly as one that does not exist.
    let refused = vec![Resolved::Unknown(Unknown::Process); 2];
    assert_eq!(table.resolve(other, &batch, seconds(0)), refused);
    assert!(table.list(other).is_empty());
    let answers = table.resolve(owner, &batch, seconds(1));
    assert_eq!(answers[1], Resolved::Unknown(Unknown::Process));
    assert_eq!(code(answers[0].clone()).frames[0].function, "secret");
    assert_eq!(table.list(owner).len(), 1);
    // Not even reading its log is caused by others.
    let updates = table.counts.updates;
    table.resolve(other, &batch, seconds(100));
    assert_eq!(table.counts.updates, updates);
}

#[test]
fn processes_that_come_and_go_leave_nothing() {
    let limits = Limits { ended_processes: 8, ..Limits::default() };
    let mut table = Processes::new(limits);
    for number in 0..500_u32 {
        let scribe = Scribe::builder().build();
        let first = scribe.load(&Code::at(0x1000, 64).named(&format!("process {number}")));
        // One id in ten is used again.
        let key = ProcessKey { pid: number % 50, start: u64::from(number) };
        table.found(key, facts(1000), found(&scribe));
        // What was announced last is read when it has ended: the log is still held.
        drop(first);
        let last = scribe.load(&Code::at(0x2000, 64).named("last"));
        let now = seconds(u64::from(number));
        table.ended(key, now);
        last.leak();
        let address = Address { pid: key.pid, start: Some(key.start), address: 0x2000, time: None };
        let answer = code(table.resolve(ROOT, &[address], now).remove(0));
        assert_eq!(answer.frames[0].function, "last");
        table.forget_ended(now);
        let gauges = table.gauges();
        assert!(gauges.processes <= 8 && gauges.codes <= 16, "{gauges:?}");
    }
    // Some time later, nothing is left of them.
    table.forget_ended(seconds(500) + limits.ended);
    let gauges = table.gauges();
    assert_eq!((gauges.processes, gauges.codes, gauges.code_bytes), (0, 0, 0));
}

#[test]
fn one_process_takes_no_more_than_its_share() {
    let scribe = Scribe::builder().build();
    let load = |n: u64| scribe.load(&Code::at(n << 12, 64).named("f")).leak();
    (0..2000).for_each(load);
    let limits = Limits { codes_of_process: 500, ..Limits::default() };
    let mut table = table(&scribe, limits);
    table.update_if_run(KEY, None, seconds(0));
    assert_eq!(table.gauges().codes, 500);
    // A budget of bytes: the rest is read by later updates, each of which waits for its turn.
    let limits =
        Limits { bytes_of_update: 200_000, bytes_per_second: 100_000, ..Limits::default() };
    let mut table = self::table(&scribe, limits);
    let mut updates = 0;
    for tenths in 0..10_000 {
        let before = table.counts;
        table.update_if_run(KEY, None, seconds(0) + tenths * 100_000_000);
        let bytes = table.counts.bytes_read - before.bytes_read;
        assert!(bytes < 2 * limits.bytes_of_update + (1 << 16), "{bytes}");
        updates += u64::from(table.counts.updates > before.updates);
        if table.gauges().codes == 2000 {
            break;
        }
    }
    assert_eq!(table.gauges().codes, 2000);
    assert!(updates > 1, "{updates}");
}

/// Eight thousand times a code with a long name would be gigabytes.
#[test]
fn an_answer_is_bounded_whatever_names_are() {
    let long = "\u{1}".repeat(100_000);
    let scribe = Scribe::builder().build();
    let _long = scribe.load(&Code::at(0x10000, 64).named(&long));
    let _short = scribe.load(&Code::at(0x20000, 64).named("short"));
    let mut table = table(&scribe, Limits::default());
    let other = ProcessKey { pid: KEY.pid + 1, start: 1 };
    table.found(other, facts(1000), found(&scribe));
    let mut addresses = vec![asked(0x10000, None); 8000];
    addresses.push(Address { pid: other.pid, start: Some(1), address: 0x20000, time: None });
    let request = Request { version: VERSION, id: 1, ask: Ask::Resolve(addresses) };
    let answer = table.answer(ROOT, &request, true, 1_000_000_000).expect("nothing to wait for");
    assert!(answer.line().len() < 16 << 20, "{}", answer.line().len());
    let Content::Resolved(resolved) = answer.content else { panic!("an error") };
    let of = |resolved: &Resolved| match resolved {
        Resolved::Code(code) => Ok(code.frames[0].function.chars().count()),
        Resolved::Unknown(why) => Err(*why),
    };
    // Cut, then left out; what another process has is answered.
    assert_eq!(of(&resolved[0]), Ok(4097));
    assert_eq!(of(&resolved[7999]), Err(Unknown::Description));
    assert_eq!(of(&resolved[8000]), Ok("short".len()));
}
