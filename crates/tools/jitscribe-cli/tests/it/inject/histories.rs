//! Random histories of code as jitdumps: all commands agree on who is where, with a model that holds
//! each byte.

use std::collections::BTreeMap;

use jitdump::ExtendedCode;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::inject::model::Memory;
use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, Jit, MS, PID, Scene, process};

/// A second. Events are so far apart that none comes near a sample, or a fork.
const SECOND: u64 = 1000 * MS;
/// From here on, each of so many addresses is asked for, eight bytes from the one before.
const FIRST: u64 = CODE;
const ASKED: u64 = 22;
/// Where code is that is always there, under an index of its own.
const ALWAYS: u64 = CODE + 0x1000;

#[derive(Clone, Debug)]
enum What {
    Load { index: u64, start: u64, size: u64, lives_for: Option<u64> },
    Move { index: u64, old: u64, new: u64 },
}

#[derive(Clone, Debug)]
struct Event {
    /// Whether the forked child does it, once there is one.
    by_child: bool,
    /// In seconds.
    time: u64,
    what: What,
}

/// What is told in the order of a file, when a child is forked, and when samples are taken.
#[derive(Clone, Debug)]
struct Story {
    events: Vec<Event>,
    forked: u64,
    samples: Vec<u64>,
}

fn stories() -> impl Strategy<Value = Story> {
    // Few indices and addresses, so that they meet.
    let address = || (0u64..8).prop_map(|slot| FIRST + slot * 16);
    let load = (0u64..4, address(), 0u64..5, prop::option::weighted(0.2, 0u64..9));
    let load = load.prop_map(|(index, start, words, lives_for)| What::Load {
        index,
        start,
        size: words * 8,
        lives_for,
    });
    let moved = (0u64..5, address(), address());
    let moved = moved.prop_map(|(index, old, new)| What::Move { index, old, new });
    let what = prop_oneof![6 => load, 5 => moved];
    let event = (any::<bool>(), 1u64..20, what);
    let event = event.prop_map(|(by_child, time, what)| Event { by_child, time, what });
    let events = prop::collection::vec(event, 1..24);
    let story = (events, 3u64..18, prop::collection::vec(1u64..22, 4));
    story.prop_map(|(mut events, forked, samples)| {
        for event in &mut events {
            event.by_child &= event.time > forked;
        }
        Story { events, forked, samples }
    })
}

impl Story {
    fn forked(&self) -> u64 {
        self.forked * SECOND + 300 * MS
    }

    /// The memory of the parent and of the child after `until` seconds, and which code each MOVE was
    /// about. Without forks, all is one process's.
    fn memories(
        &self,
        until: u64,
        is_forked: bool,
    ) -> ([Memory; 2], BTreeMap<usize, Option<usize>>) {
        enum Step {
            Event,
            Death,
        }
        let mut steps = Vec::new();
        for (number, event) in self.events.iter().enumerate() {
            steps.push((event.time, number, Step::Event));
            if let What::Load { lives_for: Some(lives_for), .. } = event.what {
                steps.push((event.time + lives_for, number, Step::Death));
            }
        }
        steps.sort_by_key(|(time, ..)| *time);
        let mut parent = Memory::default();
        let (mut child, mut moved) = (None, BTreeMap::new());
        for (time, number, step) in steps.into_iter().filter(|(time, ..)| *time <= until) {
            let event = &self.events[number];
            if is_forked && time > self.forked && child.is_none() {
                child = Some(parent.clone());
            }
            let memory = match &mut child {
                Some(child) if event.by_child => child,
                _ => &mut parent,
            };
            match (step, &event.what) {
                (Step::Death, _) => memory.died(number),
                (_, &What::Load { index, start, size, .. }) => {
                    memory.load(0, index, start, size, number);
                }
                (_, &What::Move { index, old, new }) => {
                    moved.insert(number, memory.moved(0, index, old, new));
                }
            }
        }
        let child = child.unwrap_or_else(|| parent.clone());
        ([parent, child], moved)
    }

    /// Whether the first byte of the code, placed at `start`, was in memory for any time up to `until` seconds.
    fn had_its_beginning(&self, code: usize, start: u64, until: u64, in_child: bool) -> bool {
        // A child inherits what is left at the fork.
        let since = if in_child { self.forked + 1 } else { 1 };
        (since..=until).any(|time| {
            let ([parent, child], _) = self.memories(time, true);
            let memory = if in_child { child } else { parent };
            memory.at(start) == Some((code, start))
        })
    }

    fn dump(&self, pid: u32, child: u32) -> Vec<u8> {
        let mut jit = Jit::new(pid, 10 * MS).index(99).load(SECOND, ALWAYS, 16, "always");
        for (number, Event { by_child, time, what }) in self.events.iter().enumerate() {
            jit = jit.by(if *by_child { child } else { pid });
            let (name, timestamp) = (name(number), time * SECOND);
            jit = match *what {
                What::Load { index, start, size, lives_for: None } => {
                    jit.index(index).load(timestamp, start, size as usize, &name)
                }
                What::Load { index, start, size, lives_for: Some(lives_for) } => {
                    jit.index(index).extended(&ExtendedCode {
                        timestamp,
                        address: start,
                        size,
                        name: name.as_bytes(),
                        bytes: Some(&vec![0x90; size as usize]),
                        died: Some((time + lives_for) * SECOND),
                        ..ExtendedCode::default()
                    })
                }
                What::Move { index, old, new } => jit.moved(timestamp, index, old, new, 8),
            };
        }
        jit.bytes()
    }
}

fn name(number: usize) -> String {
    format!("code{number}")
}

fn asked() -> impl Iterator<Item = u64> {
    (0..ASKED).map(|word| FIRST + word * 8)
}

/// The name at each address that is asked for.
type Names = Vec<Option<String>>;

/// The names of ranges, at the addresses that are asked for.
fn names_of(ranges: &[(u64, u64, String)]) -> Names {
    let at = |address| {
        let mut here =
            ranges.iter().filter(|(start, size, _)| (*start..start + size).contains(&address));
        let found = here.next().map(|(.., name)| name.clone());
        assert!(here.next().is_none(), "two codes at {address:x}: {ranges:?}");
        found
    };
    asked().map(at).collect()
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text}"))
}

fn jitscribe(scene: &Scene, words: &str) -> String {
    scene.ask(words).ok().stdout
}

/// `dump --perf-map`.
fn perf_map(scene: &Scene, dump: &str) -> Names {
    let out = jitscribe(scene, &format!("dump --perf-map {dump}"));
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap();
        (hex(next()), hex(next()), next().to_owned())
    };
    names_of(&out.lines().map(line).collect::<Vec<_>>())
}

/// `dump --elf`, as `nm` reads it.
fn elf(scene: &Scene, dump: &str) -> Names {
    jitscribe(scene, &format!("dump --elf images {dump}"));
    let files: Vec<_> = std::fs::read_dir(scene.path("images")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let path = files[0].as_ref().unwrap().path();
    // What is at 0x1000 in the file was at the address in its name.
    let start = hex(path.file_stem().unwrap().to_str().unwrap().rsplit('-').next().unwrap());
    let out = scene.run(&["nm", "-S", "--defined-only", path.to_str().unwrap()]);
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (hex(words[0]) - 0x1000 + start, hex(words[1]), words[3].to_owned())
    };
    names_of(&out.lines().map(line).collect::<Vec<_>>())
}

/// Which code each MOVE is about, in the listing.
fn moved(scene: &Scene, dump: &str) -> Vec<String> {
    let out = jitscribe(scene, &format!("dump {dump}"));
    let moved = out.lines().filter_map(|line| line.split_once(" (moved from "));
    moved.map(|(line, _)| line.rsplit(' ').next().unwrap().to_owned()).collect()
}

/// A log of memcheck with each address that is asked for, named.
fn memcheck(scene: &Scene, dump: &str) -> Names {
    let stack = |address| {
        format!("=={PID}== Invalid read\n=={PID}==    at 0x{address:X}: ???\n=={PID}==\n")
    };
    scene.write("memcheck.log", asked().map(stack).collect::<String>());
    let out = jitscribe(scene, &format!("memcheck --jitdump {dump} memcheck.log -o -"));
    let frames = out
        .lines()
        .filter_map(|line| line.split_once(": ").filter(|(at, _)| at.contains(" at 0x")));
    let name = |(_, name): (&str, &str)| {
        name.split(' ').next().filter(|name| *name != "???").map(str::to_owned)
    };
    frames.map(name).collect()
}

/// A profile of callgrind with each address that is asked for, named.
fn callgrind(scene: &Scene, dump: &str) -> Names {
    let mut profile = format!(
        "version: 1\ncreator: callgrind-3.22\npid: {PID}\ncmd: app\npart: 1\n\npositions: instr line\n\
         events: Ir\nsummary: {ASKED}\n\nob=(1) ???\nfl=(1) ???\n"
    );
    for (number, address) in (1..).zip(asked()) {
        profile += &format!("fn=({number}) 0x{address:016x}\n0x{address:x} 0 1\n");
    }
    profile += &format!("\ntotals: {ASKED}\n");
    scene.write("callgrind.out", profile);
    let out = jitscribe(scene, &format!("callgrind --jitdump {dump} callgrind.out -o -"));
    let (mut names, mut function) = (BTreeMap::new(), String::new());
    for line in out.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if let Some((address, _)) =
            line.split_once(' ').filter(|(at, _)| at.starts_with("0x"))
        {
            names.insert(hex(address), function.clone());
        }
    }
    asked().map(|address| names.remove(&address).filter(|name| !name.starts_with("0x"))).collect()
}

/// What `inject` and perf make of samples at each address, at each of the story's times in processes of
/// their own: what ran at another time makes no difference then.
fn injected(story: &Story, scene: &Scene) -> TestCaseResult {
    let mut recording = Recording::new();
    let mut expected = Vec::new();
    let mut told: Vec<(u64, u32, Option<u64>)> = Vec::new();
    let pids: Vec<u32> = (0..).map(|pair| PID + 10 * pair).take(story.samples.len()).collect();
    for &pid in &pids {
        process(scene, &mut recording, pid);
        scene.write(&format!("jit-{pid}.dump"), story.dump(pid, pid + 1));
        told.push((story.forked(), pid, None));
    }
    for ((number, &time), &pid) in story.samples.iter().enumerate().zip(&pids) {
        let in_child = number % 2 == 1 && time > story.forked;
        let memory = &story.memories(time, true).0[usize::from(in_child)];
        for (word, address) in (0..).zip(asked()) {
            let sampled = time * SECOND + (500 + word) * MS;
            told.push((sampled, pid + u32::from(in_child), Some(address)));
            let there = memory.at(address).map(|(code, start)| {
                // A symbol begins where its code does. If other code overwrote its beginning at the same instant, the
                // beginning never was there, and the symbol begins at what is left.
                let began = story.had_its_beginning(code, start, time, in_child);
                (name(code), began.then_some(address - start))
            });
            expected.push(((sampled, pid + u32::from(in_child)), there));
        }
    }
    told.sort();
    for (time, pid, address) in told {
        match address {
            None => recording.fork(pid + 1, pid, time),
            Some(address) => recording.sample(pid, address, time),
        };
    }
    assert!(ARENA.contains(&ALWAYS));
    let (named, unnamed) = scene.inject(&recording, &[]).counts();
    let count = expected.iter().filter(|(_, there)| there.is_some()).count() as u64;
    prop_assert_eq!((named, unnamed), (count, expected.len() as u64 - count));
    let shown: BTreeMap<(u64, u32), String> = scene
        .script("out.data")
        .into_iter()
        .map(|mut sample| ((sample.time, sample.pid), sample.frames.remove(0).0))
        .collect();
    for (sample, there) in expected {
        // An image shows code also where it is no more: one of two that were never seen at one time.
        let Some((name, offset)) = there else { continue };
        let shown = &shown[&sample];
        match offset {
            Some(offset) => prop_assert_eq!(shown, &format!("{name}+{offset:#x}"), "{:?}", sample),
            None => prop_assert!(shown.starts_with(&format!("{name}+")), "{shown} {sample:?}"),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn all_commands_agree_on_who_is_where(story in stories()) {
        let scene = Scene::new();
        let dump = story.dump(PID, PID + 1);
        scene.write("story.dump", dump);
        // A dump alone does not tell of forks.
        let ([memory, _], meant) = story.memories(u64::MAX, false);
        let live: Names = asked().map(|address| Some(name(memory.at(address)?.0))).collect();
        let last: Names = asked().map(|address| Some(name(memory.last(address)?))).collect();
        let meant: Vec<String> =
            meant.into_values().map(|code| code.map_or("?".to_owned(), name)).collect();

        prop_assert_eq!(moved(&scene, "story.dump"), meant);
        prop_assert_eq!(&perf_map(&scene, "story.dump"), &live);
        jitscribe(&scene, "dump --jitdump again.dump story.dump");
        prop_assert_eq!(&perf_map(&scene, "again.dump"), &live);
        prop_assert_eq!(elf(&scene, "story.dump"), live);
        prop_assert_eq!(memcheck(&scene, "story.dump"), last.clone());
        prop_assert_eq!(callgrind(&scene, "story.dump"), last);
        injected(&story, &scene)?;
    }
}
