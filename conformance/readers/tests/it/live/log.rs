//! The reader in Go on the code log of a live process: this one.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use end_to_end::jitscribe::jitscribe;
use end_to_end::tool::run;
use jitscribe::{Code, Inlined, Kind, Line, LoadedCode, Scribe, Unwind};
use serde_json::Value;

use crate::codelog::codelog;

const FIRST: u64 = 0x5000_0000_0000;

/// The codes that a command prints as lines of JSON, by address and time. `null` and what is missing are the same.
fn loads(command: &mut Command) -> BTreeMap<(String, u64), Value> {
    let printed = run(command).stdout;
    let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let loads = lines.filter(|event| event["event"] == "load");
    loads
        .map(|mut event| {
            event.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
            let address = event["address"].as_str().expect("an address").to_owned();
            ((address, event["time"].as_u64().expect("a time")), event)
        })
        .collect()
}

/// Announces a code of which everything is known. Its name and its file contain its address.
fn announce(scribe: &Scribe, number: u64) -> LoadedCode {
    let address = FIRST + number * 0x1000;
    let bytes = vec![0x90_u8; 64 + usize::try_from(number % 50).expect("small")];
    let (name, file) = (format!("code at {address:#x}"), format!("/src/{address:x}.lang"));
    let lines = [Line::new(0, &file, 1).column(3), Line::new(20, &file, 7).column(1)];
    let (outer, inner) = ([8..40, 44..48], [10..20, 44..46]);
    let inlined = [
        Inlined::new("outer", &outer).called_from(&file, 3).column(9),
        Inlined::new("inner", &inner).called_from(&file, 5).within(0),
    ];
    let code = Code::new(&bytes).runs_at(address).named(&name).lines(&lines).inlined(&inlined);
    let code = if number.is_multiple_of(3) { code.tier("baseline") } else { code };
    let code = if number.is_multiple_of(5) { code.kind(Kind::Stub) } else { code };
    scribe.load(&code.unwind(Unwind::Rows(&[])))
}

#[test]
fn the_go_reader_reads_a_live_log_as_the_command_does() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let go = codelog(dir.path());
    let pid = std::process::id().to_string();
    let scribe = Scribe::builder().bytes().limit(4 << 20).build();

    // All that can be known of a code, some of which are gone.
    let mut codes: Vec<LoadedCode> = (0..500).map(|number| announce(&scribe, number)).collect();
    codes.drain(100..150);
    let ours = loads(jitscribe().args(["dump", "-p", &pid, "--json"]));
    let theirs = loads(Command::new(&go).args(["process", &pid]));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    assert_eq!(theirs.len(), 500);
    assert_eq!(theirs.values().filter(|code| code.get("died").is_some()).count(), 50);
    for (key, ours) in &ours {
        let theirs = &theirs[key];
        for field in ["pid", "tid", "size", "index", "name", "tier", "died", "lines", "inlined"] {
            assert_eq!(ours.get(field), theirs.get(field), "{field} of {}", ours["name"]);
        }
        let kind = ours["kind"].as_str().expect("a kind").to_lowercase().replace(' ', "-");
        assert_eq!(theirs["kind"], *kind, "{}", ours["name"]);
        let size =
            |code: &Value| code["unwind"]["eh_frame"].as_str().map(|hex| hex.len() as u64 / 2);
        assert_eq!(ours["unwind"]["eh_frame_size"].as_u64(), size(theirs), "{}", ours["name"]);
        assert!(size(theirs) > Some(0));
    }

    // While two threads announce and unload code, so that space is reused all the time, each code is whole: what is
    // known of it is of one code. The codes that stay are always there.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 1..3 {
            let (scribe, stop) = (&scribe, &stop);
            scope.spawn(move || {
                let mut number = thread * 1_000_000;
                let mut alive = std::collections::VecDeque::new();
                while !stop.load(Relaxed) {
                    alive.push_back(announce(scribe, number));
                    number += 1;
                    if alive.len() > 200 {
                        alive.pop_front();
                    }
                }
            });
        }
        let mut seen = 0;
        // Once at a time, and by what changes.
        for polls in ["1", "1", "2", "1", "20", "100"] {
            let codes = loads(Command::new(&go).args(["process", &pid, polls]));
            let mut staying = 0;
            for ((address, _), code) in &codes {
                assert_eq!(code["name"], format!("code at {address}"));
                let number = u64::from_str_radix(&address[2..], 16).expect("hexadecimal") - FIRST;
                let number = number / 0x1000;
                assert_eq!(code["size"], 64 + number % 50, "{code}");
                assert_eq!(
                    code["lines"][1]["file"],
                    format!("/src/{}.lang", &address[2..]),
                    "{code}"
                );
                assert_eq!(code["inlined"][1]["name"], "inner", "{code}");
                staying += usize::from(number < 500 && code.get("died").is_none());
            }
            assert_eq!(staying, 450);
            seen += codes.len() - staying;
        }
        stop.store(true, Relaxed);
        assert!(seen > 0, "no code of the threads");
    });
    drop(codes);
}
