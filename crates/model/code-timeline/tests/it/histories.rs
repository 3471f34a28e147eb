//! Random histories compared with a model that holds each byte of each process.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Memory;
use code_timeline::{AddressSpaceId, Code, CodeId, History, HistoryBuilder, Processes};
use proptest::prelude::*;

/// Addresses are below this.
const BYTES: usize = 48;

/// An event of one address space from one source.
#[derive(Clone, Debug)]
enum What {
    Load { index: u64, start: u64, size: u64, lives_for: Option<u64> },
    Move { index: u64, old: u64, new: u64 },
    Clear { start: u64, size: u64 },
}

#[derive(Clone, Debug)]
struct Event {
    source: usize,
    process: usize,
    time: u64,
    what: What,
}

/// When each process but the first was forked, and which of those before it was the parent.
#[derive(Clone, Debug)]
struct Fork {
    parent: usize,
    time: u64,
}

/// By address: the LOAD of the code there, and where the code begins.
type Table = Vec<Option<(usize, u64)>>;

/// What is where in each process after each time, the code that each MOVE refers to, and the last owner of each byte
/// of the first process.
struct Truth {
    tables: BTreeMap<(usize, u64), Table>,
    moved: BTreeMap<usize, Option<usize>>,
    last: BTreeMap<u64, usize>,
}

fn truth(forks: &[Fork], events: &[Event], until: u64) -> Truth {
    let mut memories: Vec<Option<Memory>> = vec![None; forks.len() + 1];
    memories[0] = Some(Memory::default());
    let (mut tables, mut moved) = (BTreeMap::new(), BTreeMap::new());
    for now in 0..=until {
        // A forked process has what was there before any event of this time.
        let before = memories.clone();
        for (number, fork) in forks.iter().enumerate().filter(|(_, fork)| fork.time == now) {
            memories[number + 1] = Some(before[fork.parent].clone().unwrap_or_default());
        }
        for is_clear in [true, false] {
            for (number, event) in events.iter().enumerate() {
                let Event { source, process, time, ref what } = *event;
                let Some(memory) = &mut memories[process] else { continue };
                match *what {
                    What::Clear { start, size } if is_clear && time == now => {
                        memory.clear(start..start + size);
                    }
                    What::Load { index, start, size, lives_for } if !is_clear => {
                        if time == now {
                            memory.load(source, index, start, size, number);
                        }
                        if lives_for.is_some_and(|lives_for| time + lives_for == now) {
                            memory.died(number);
                        }
                    }
                    What::Move { index, old, new } if !is_clear && time == now => {
                        moved.insert(number, memory.moved(source, index, old, new));
                    }
                    _ => {}
                }
            }
        }
        for (process, memory) in memories.iter().enumerate() {
            let at = |address| memory.as_ref()?.at(address);
            let table = (0..BYTES as u64).map(at).collect();
            tables.insert((process, now), table);
        }
    }
    let first = memories.swap_remove(0).unwrap_or_default();
    let last = (0..BYTES as u64).filter_map(|at| Some((at, first.last(at)?))).collect();
    Truth { tables, moved, last }
}

/// Adds the same events to a [`HistoryBuilder`]; returns the number of each MOVE.
fn add_events(
    events: &[Event],
    processes: &Processes,
    space: impl Fn(usize) -> AddressSpaceId,
) -> (HistoryBuilder<usize>, BTreeMap<usize, code_timeline::MoveId>) {
    let mut builder = HistoryBuilder::new();
    let mut moves = BTreeMap::new();
    let sources = events.iter().map(|event| event.source).max().map_or(0, |last| last + 1);
    for source in 0..sources {
        let mut source_builder = builder.source();
        for (number, event) in events.iter().enumerate().filter(|(_, of)| of.source == source) {
            let (space, time) = (space(event.process), event.time);
            match event.what {
                What::Load { index, start, size, lives_for } => {
                    let code = Code { address: start, size, origin: number };
                    let id = source_builder.load(space, time, index, code);
                    if let Some(lives_for) = lives_for {
                        source_builder.unload(space, time + lives_for, id);
                    }
                }
                What::Move { index, old, new } => {
                    moves.insert(number, source_builder.moved(space, time, index, old, new));
                }
                What::Clear { .. } => {}
            }
        }
        source_builder.finish(processes);
    }
    for event in events {
        if let What::Clear { start, size } = event.what {
            builder.clear(space(event.process), event.time, start..start + size);
        }
    }
    (builder, moves)
}

fn whats() -> impl Strategy<Value = What> {
    // Few indices and addresses, so that they collide.
    let address = || (0u64..8).prop_map(|slot| slot * 4);
    let load = (0u64..4, address(), 0u64..14, prop::option::weighted(0.2, 0u64..9));
    let load = load.prop_map(|(index, start, size, lives_for)| What::Load {
        index,
        start,
        size,
        lives_for,
    });
    let moved = (0u64..5, address(), address());
    let moved = moved.prop_map(|(index, old, new)| What::Move { index, old, new });
    let clear = (0u64..40, 0u64..8).prop_map(|(start, size)| What::Clear { start, size });
    prop_oneof![6 => load, 5 => moved, 1 => clear]
}

fn forks() -> impl Strategy<Value = Vec<Fork>> {
    let fork = (any::<prop::sample::Index>(), 1u64..30);
    prop::collection::vec(fork, 0..5).prop_map(|forks| {
        (1..)
            .zip(forks)
            .map(|(count, (parent, time))| Fork { parent: parent.index(count), time })
            .collect()
    })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0usize..2, 0usize..6, 0u64..30, whats());
    prop::collection::vec(event, 0..30).prop_map(|events| {
        let event = |(source, process, time, what)| Event { source, process, time, what };
        let mut events: Vec<Event> = events.into_iter().map(event).collect();
        // File by file, as they are read.
        events.sort_by_key(|event| event.source);
        events
    })
}

/// The LOAD of what is at each address, and where it begins.
fn table(at: impl Fn(u64) -> Option<CodeId>, history: &History<usize>) -> Table {
    let code = |address| {
        let code = history.code(at(address)?);
        assert!(code.range().contains(&address));
        Some((code.origin, code.address))
    };
    (0..BYTES as u64).map(code).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_history_agrees_with_every_byte(
        forks in forks(),
        mut events in events(),
        copied in prop_oneof![Just(0usize), Just(6), Just(usize::MAX)],
    ) {
        let mut processes = Processes::new();
        processes.add(0);
        for (pid, fork) in (1..).zip(&forks) {
            processes.fork(pid, fork.parent as u32, fork.time);
        }
        for event in &mut events {
            event.process %= forks.len() + 1;
            // A process has no events before it exists.
            let began = event.process.checked_sub(1).map_or(0, |fork| forks[fork].time);
            event.time = event.time.max(began);
        }
        // A mapping has no effect in a process that has no code of its own.
        let is_clear = |event: &Event| matches!(event.what, What::Clear { .. });
        let own = events.iter().filter(|event| !is_clear(event)).map(|event| event.process);
        let own: BTreeSet<usize> = own.collect();
        events.retain(|event| !is_clear(event) || own.contains(&event.process));
        let until = 45;
        let truth = truth(&forks, &events, until);
        let space = |process: usize| processes.at(process as u32, u64::MAX).unwrap();
        let (builder, moves) = add_events(&events, &processes, space);
        let history = builder.finish(&processes, copied);
        for (number, id) in moves {
            let moved = history.moved(id).map(|code| history.code(code).origin);
            prop_assert_eq!(moved, truth.moved[&number], "move {}", number);
        }
        for ((process, time), expected) in &truth.tables {
            let at = |address| history.at(&processes, space(*process), address, *time);
            let found = table(at, &history);
            prop_assert_eq!(&found, expected, "process {} at {}", process, time);
        }
    }

    #[test]
    fn arrivals_agree_with_the_last_owner_of_each_byte(mut events in events()) {
        for event in &mut events {
            event.process = 0;
            event.source = 0;
        }
        let truth = truth(&[], &events, 45);
        let (builder, _) = add_events(&events, &Processes::new(), |_| AddressSpaceId::ONLY);
        let mut last = BTreeMap::new();
        for code in builder.into_arrivals(AddressSpaceId::ONLY) {
            last.extend(code.range().map(|address| (address, code.origin)));
        }
        prop_assert_eq!(last, truth.last);
    }
}

/// What is where at the end of one source's events.
fn final_layout(add: impl Fn(&mut code_timeline::SourceBuilder<'_, &'static str>)) -> String {
    let processes = Processes::new();
    let mut builder = HistoryBuilder::new();
    let mut source = builder.source();
    add(&mut source);
    source.finish(&processes);
    let history = builder.finish(&processes, 0);
    let timeline = history.timeline(AddressSpaceId::ONLY).unwrap();
    let pieces = timeline.pieces().iter().filter(|piece| piece.until == u64::MAX);
    let shown = pieces.map(|piece| {
        let code = history.code(piece.code);
        format!("{} {:?} of {:?}", code.origin, piece.range, code.range())
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn code(address: u64, origin: &'static str) -> Code<&'static str> {
    Code { address, size: 8, origin }
}

const ONE: AddressSpaceId = AddressSpaceId::ONLY;

#[test]
fn a_move_with_a_reused_index_moves_the_code_at_the_old_address() {
    let shown = final_layout(|source| {
        source.load(ONE, 1, 7, code(0, "A"));
        source.load(ONE, 2, 7, code(16, "B"));
        source.moved(ONE, 3, 7, 0, 32);
        source.moved(ONE, 4, 7, 32, 48);
    });
    assert_eq!(shown, "B 16..24 of 16..24, A 48..56 of 48..56");
}

#[test]
fn a_move_applies_to_code_that_was_overwritten_before_the_move() {
    let shown = final_layout(|source| {
        source.load(ONE, 1, 1, code(0, "A"));
        source.load(ONE, 2, 2, code(0, "B"));
        source.moved(ONE, 3, 1, 0, 32);
    });
    assert_eq!(shown, "B 0..8 of 0..8, A 32..40 of 32..40");
}

#[test]
fn an_unknown_index_is_the_code_at_the_old_address() {
    let shown = final_layout(|source| {
        source.load(ONE, 1, 1, code(0, "A"));
        source.moved(ONE, 3, 9, 0, 32);
        source.moved(ONE, 4, 1, 32, 48);
    });
    assert_eq!(shown, "A 48..56 of 48..56");
}

#[test]
fn after_a_lost_move_the_index_identifies_the_code() {
    let shown = final_layout(|source| {
        source.load(ONE, 1, 1, code(0, "A"));
        source.moved(ONE, 3, 1, 16, 32);
        source.moved(ONE, 3, 2, 16, 48);
    });
    assert_eq!(shown, "A 32..40 of 32..40");
}

#[test]
fn unloaded_code_cannot_be_moved() {
    let shown = final_layout(|source| {
        let a = source.load(ONE, 1, 1, code(0, "A"));
        source.unload(ONE, 5, a);
        source.load(ONE, 1, 2, code(8, "B"));
        source.moved(ONE, 3, 1, 0, 32);
        source.moved(ONE, 6, 1, 32, 48);
    });
    assert_eq!(shown, "B 8..16 of 8..16");
}

#[test]
fn codes_are_numbered_in_the_order_of_addition() {
    let processes = Processes::new();
    let mut builder = HistoryBuilder::new();
    builder.load(ONE, 0, code(64, "before"));
    let mut source = builder.source();
    let a = source.load(ONE, 1, 1, code(0, "A"));
    source.unload(ONE, 9, a);
    source.moved(ONE, 2, 5, 48, 56);
    let moves = [source.moved(ONE, 2, 1, 0, 16), source.moved(ONE, 1, 2, 32, 24)];
    source.load(ONE, 1, 2, code(32, "B"));
    source.finish(&processes);
    let history = builder.finish(&processes, 0);
    let numbered: Vec<_> = (0..4).map(|id| history.code(CodeId(id))).collect();
    let expected = [code(64, "before"), code(0, "A"), code(16, "A"), code(32, "B")];
    assert!(numbered.into_iter().eq(&expected) && history.len() == 4);
    assert_eq!(moves.map(|id| history.moved(id)), [Some(CodeId(2)), None]);
    let code_at = |address, time| history.at(&processes, ONE, address, time).map(|id| id.0);
    assert_eq!(
        [code_at(0, 1), code_at(16, 2), code_at(16, 8), code_at(16, 9), code_at(32, 9)],
        [Some(1), Some(2), Some(2), None, Some(3)]
    );
}

#[test]
fn times_count_before_the_order_of_the_file() {
    let shown = final_layout(|source| {
        source.moved(ONE, 3, 1, 0, 32);
        source.load(ONE, 4, 1, code(0, "B"));
        source.load(ONE, 1, 1, code(0, "A"));
    });
    assert_eq!(shown, "B 0..8 of 0..8, A 32..40 of 32..40");
}

/// A history with `A` from 10 on at 0..8, `B` from 20 on over its second half, and nothing behind.
fn with_two_codes() -> code_timeline::History<&'static str> {
    let mut builder = HistoryBuilder::new();
    builder.load(ONE, 10, code(0, "A"));
    builder.load(ONE, 20, Code { address: 4, size: 4, origin: "B" });
    builder.finish(&Processes::new(), 0)
}

#[test]
fn codes_are_added_only_where_and_when_there_is_none() {
    let mut history = with_two_codes();
    let processes = Processes::new();
    let added = [
        (code(0, "over A"), 10..11),
        (code(0, "before A"), 3..10),
        (code(16, "behind"), 15..u64::MAX),
        (code(20, "over behind"), 15..16),
        (code(20, "before behind"), 14..15),
        (code(32, "never"), 5..5),
        (Code { address: 40, size: 0, origin: "nothing" }, 0..9),
    ];
    assert_eq!(history.fill(ONE, added), 3);
    let at = |address, time| {
        history.at(&processes, ONE, address, time).map(|id| history.code(id).origin)
    };
    assert_eq!([at(0, 2), at(0, 9), at(0, 10)], [None, Some("before A"), Some("A")]);
    assert_eq!([at(4, 9), at(4, 19), at(4, 20)], [Some("before A"), Some("A"), Some("B")]);
    assert_eq!([at(16, 14), at(16, 15), at(20, 14)], [None, Some("behind"), Some("before behind")]);
    assert_eq!((at(32, 5), history.len()), (None, 5));
}

#[test]
fn an_address_space_without_code_gets_the_codes_that_are_added() {
    let mut history = with_two_codes();
    let mut processes = Processes::new();
    processes.add(1);
    processes.fork(2, 1, 5);
    let two = processes.at(2, 6).expect("an address space");
    assert_eq!(history.fill(two, [(code(64, "C"), 7..u64::MAX)]), 1);
    assert_eq!(history.timeline(two).map(|timeline| timeline.pieces().len()), Some(1));
}
