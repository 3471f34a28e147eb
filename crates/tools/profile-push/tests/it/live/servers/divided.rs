//! Profiles that are too long for a receiver arrive in parts, which carry together what the whole did.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use end_to_end::pprof::pprof;
use end_to_end::receiver::{self, Receiver};
use profile::Profile;
use profile_export::Format;
use profile_push::{BodyId, Delivery, Event, ProfileBody, Protocol};
use prost::Message;
use serde_json::{Value, json};

use super::{Clock, OTLP, PushRequest, client, deliver, folder, gunzip, made, spooled, words};

/// All that is known of samples, with how often they were and when.
type Samples = BTreeMap<String, (u64, Vec<u64>)>;

/// The samples of files together.
fn samples(files: &[Value]) -> Samples {
    let mut all = Samples::new();
    for file in files {
        let of_file: Samples = serde_json::from_value(file["samples"].clone()).expect("samples");
        for (known, (count, times)) in of_file {
            let entry = all.entry(known).or_default();
            entry.0 += count;
            entry.1.extend(times);
            entry.1.sort_unstable();
        }
    }
    all
}

fn written(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).expect("written");
    path
}

/// What the official stubs read in a profile that is not divided.
fn whole(folder: &Path, profile: &Profile) -> (ProfileBody, Samples) {
    let request = made::encode(profile, Format::Otlp);
    let file = written(folder, "whole", &request);
    (ProfileBody::otlp(&request), samples(&receiver::read(&[file])))
}

/// Each part has an ID of its own, and no row that it does not need.
fn check_parts(parts: &[Value]) {
    let mut ids = BTreeSet::new();
    for part in parts {
        assert_eq!(part["unused"], 0);
        for id in part["ids"].as_array().expect("IDs") {
            assert_eq!(id.as_str().map(str::len), Some(32));
            assert!(ids.insert(id.to_string()), "twice: {id}");
        }
    }
}

#[test]
fn parts_carry_together_what_the_whole_did() {
    // Without UTC, samples have counts instead of times.
    for to_utc in [Some(1_700_000_000_000_000_000), None] {
        let folder = folder();
        let (body, expected) = whole(folder.path(), &made::large(300, to_utc));
        let length = body.unpacked_length().expect("a request");
        assert!(length > 100_000, "{length}");
        for limit in [length / 2, 20_000, 1] {
            let parts = body.clone().divided(limit).expect("parts");
            // The same again.
            assert_eq!(parts, body.clone().divided(limit).expect("parts"));
            let mut files = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                let content = gunzip(part.gzipped());
                assert!(limit == 1 || content.len() as u64 <= limit, "{}", content.len());
                files.push(written(folder.path(), &format!("{limit}-{number}"), &content));
            }
            let parts = receiver::read(&files);
            assert_eq!(samples(&parts), expected, "{limit}");
            check_parts(&parts);
            if limit == 1 {
                // One sample each: one time, or one sum.
                let in_one = |part: &Value| samples(std::slice::from_ref(part));
                assert!(parts.iter().all(|part| in_one(part).len() == 1));
                let all: u64 = expected.values().map(|(count, _)| count).sum();
                let count = if to_utc.is_some() { all } else { expected.len() as u64 };
                assert_eq!(parts.len() as u64, count);
            }
        }
        assert_eq!(body.clone().divided(length).expect("one"), [body]);
    }
}

#[test]
fn receivers_that_take_less_get_parts() {
    let folder = folder();
    let (body, expected) = whole(folder.path(), &made::large(300, Some(1)));
    for protocol in OTLP {
        for on_disk in [false, true] {
            let received = folder.path().join(format!("{protocol:?} {on_disk}"));
            let receiver = Receiver::start(&received, &json!({ "limit": 40_000 }));
            let mut delivery = match on_disk {
                true => spooled(&received.join("spool")),
                false => Delivery::in_memory(1 << 20),
            };
            delivery.push(&body).expect("space");
            // One that fits, and comes behind all parts.
            delivery.push(&made::body(1)).expect("space");
            let mut clock = Clock::new();
            let events = deliver(&mut delivery, &mut client(&receiver, protocol), &mut clock);
            let refusal = match protocol {
                Protocol::OtlpGrpc => "divided: gRPC RESOURCE_EXHAUSTED",
                _ => "divided: HTTP 413: too long",
            };
            let said = words(&events);
            assert_eq!(said[0], refusal);
            assert!(said.iter().all(|word| word == refusal || word == "delivered"), "{said:?}");
            // Each division makes one more of one.
            let divided = said.iter().filter(|word| **word == refusal).count();
            assert_eq!(said.len() - divided, divided + 2);
            assert!(clock.waits.is_empty(), "{:?}", clock.waits);
            let files = receiver::read(&receiver.files());
            let (last, parts) = files.split_last().expect("files");
            assert_eq!(samples(parts), expected);
            check_parts(parts);
            let last: BTreeMap<String, u64> =
                serde_json::from_value(last["stacks"].clone()).expect("stacks");
            assert_eq!(last, made::profile(1).1);
            assert_eq!(delivery.usage().waiting, 0);
        }
    }
}

#[test]
fn a_single_sample_that_is_too_long_is_rejected() {
    let folder = folder();
    let receiver = Receiver::start(&folder.path().join("received"), &json!({ "limit": 100 }));
    let mut delivery = spooled(&folder.path().join("spool"));
    let (body, _) = whole(folder.path(), &made::large(20, Some(1)));
    delivery.push(&body).expect("space");
    let mut client = client(&receiver, Protocol::OtlpHttp);
    let events = deliver(&mut delivery, &mut client, &mut Clock::new());
    let rejected = events.iter().filter_map(|event| match event {
        Event::Rejected { path, .. } => Some(path.clone().expect("kept")),
        _ => None,
    });
    let rejected: Vec<_> = rejected.collect();
    // It comes to an end, and what was rejected is kept.
    let divided = events.len() - rejected.len();
    assert_eq!(rejected.len(), divided + 1);
    assert!(receiver.files().is_empty());
    let files: Vec<_> = rejected
        .iter()
        .enumerate()
        .map(|(number, path)| {
            let content = gunzip(&fs::read(path).expect("a file"));
            written(folder.path(), &number.to_string(), &content)
        })
        .collect();
    let (_, expected) = whole(folder.path(), &made::large(20, Some(1)));
    assert_eq!(samples(&receiver::read(&files)), expected);
}

/// Blocks of `pprof -traces`: labels, values, and functions with their lines.
fn traces(file: &Path, home: &Path) -> Vec<String> {
    let printed = pprof(file, home, &["-traces", "-sample_index=samples", "-lines"]);
    let blocks = printed.split("-----------+").skip(1);
    let mut blocks: Vec<_> = blocks
        .map(|block| block.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>())
        .filter(|block| !block.trim().is_empty())
        .collect();
    blocks.sort();
    blocks
}

#[test]
fn pprof_reads_the_same_in_parts_for_pyroscope() {
    let folder = folder();
    let home = folder.path();
    let pprof_file = made::encode(&made::large(200, Some(1)), Format::Pprof);
    let expected = traces(&written(home, "whole.pb.gz", &pprof_file), home);
    assert!(expected.len() >= 200, "{}", expected.len());
    let labels = [("service_name".to_owned(), "app".to_owned())];
    let body = ProfileBody::pyroscope(&pprof_file, &labels);
    let length = body.unpacked_length().expect("a profile");
    assert_eq!(length, gunzip(&pprof_file).len() as u64);

    let mut delivery = Delivery::in_memory(1 << 20);
    let parts = body.divided(length / 3).expect("parts");
    // The longest of them is too long for the receiver.
    let longest = parts.iter().map(|part| gunzip(part.gzipped()).len()).max().expect("parts");
    let settings = json!({ "limit": longest - 1 });
    let receiver = Receiver::start(&home.join("received"), &settings);
    delivery.push_parts(&parts).expect("space");
    let mut client = client(&receiver, Protocol::Pyroscope);
    let said = words(&deliver(&mut delivery, &mut client, &mut Clock::new()));
    assert!(said.iter().any(|word| word == "divided: HTTP 413: too long"), "{said:?}");
    let mut all = Vec::new();
    let mut ids = BTreeSet::new();
    for (number, file) in receiver.files().iter().enumerate() {
        let request = PushRequest::decode(&fs::read(file).expect("a file")[..]).expect("a request");
        let [series] = &request.series[..] else { panic!("one series") };
        let labels: Vec<_> = series.labels.iter().map(|it| it.value.as_str()).collect();
        assert_eq!(labels, ["process_cpu", "app"]);
        let [sample] = &series.samples[..] else { panic!("one sample") };
        assert!(ids.insert(sample.id.clone()), "twice: {}", sample.id);
        let path = written(home, &format!("{number}.pb.gz"), &sample.raw_profile);
        all.extend(traces(&path, home));
        let mappings = pprof(&path, home, &["-raw"]);
        assert!(mappings.contains("/opt/app/bin/app"), "{mappings}");
    }
    all.sort();
    assert_eq!(all, expected);
}

#[test]
fn what_cannot_be_divided_is_said() {
    for content in [&b"\x0a\xff"[..], b"\xff", b"\x1a\x00", b"\x0a\x04\x12\x02\x12\x05"] {
        assert!(ProfileBody::otlp(content).halves().is_err(), "{content:?}");
    }
    // An empty request has no samples, and a stack that is not there is an error.
    assert_eq!(ProfileBody::otlp(b"").halves(), Ok(None));
    let two_samples = b"\x0a\x0c\x12\x0a\x12\x08\x12\x02\x08\x07\x12\x02\x08\x07";
    let error = ProfileBody::otlp(two_samples).halves().expect_err("no stacks");
    assert_eq!(error.to_string(), "the profile is malformed: there is no row 7 among the stacks");
    // A field of a later version may refer to a table.
    let unknown = b"\x0a\x0f\x12\x0d\x12\x0b\x12\x00\x12\x00\xa0\x06\x01\x3a\x02ab";
    let error = ProfileBody::otlp(unknown).halves().expect_err("an unknown field");
    assert_eq!(error.to_string(), "the field 100 of Profile is unknown, and may refer to a table");
    assert!(ProfileBody::pyroscope(b"no gzip", &[]).halves().is_err());
    // The whole is sent, and rejected, if it is too long all the same.
    let folder = folder();
    let receiver = Receiver::start(folder.path(), &json!({ "limit": 10 }));
    let mut delivery = Delivery::in_memory(1 << 20);
    let long = ProfileBody::otlp(&[0xff; 5000]);
    let id: BodyId = delivery.push(&long).expect("space").id;
    let mut client = client(&receiver, Protocol::OtlpHttp);
    let events = deliver(&mut delivery, &mut client, &mut Clock::new());
    let [Event::Rejected { id: rejected, cause, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((*rejected, cause.to_string().as_str()), (id, "HTTP 413: too long"));
}
