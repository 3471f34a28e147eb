//! Reads what was exported, without what wrote it: how often each stack is in it. A stack is the names of its functions, the innermost first.

pub mod otlp;
pub mod pprof;

use std::collections::{BTreeMap, HashMap};

use profile_export::Format;
use serde_json::Value;

/// A function, and its line where the format tells.
pub type Line = (String, u64);
/// How often each stack was sampled.
pub type Stacks = BTreeMap<Vec<Line>, u64>;

/// What a file of this format has.
pub fn stacks(format: Format, bytes: &[u8]) -> Stacks {
    match format {
        Format::Firefox => firefox(bytes),
        Format::Speedscope => speedscope(bytes),
        Format::Pprof => pprof::profile(bytes).stacks(),
        Format::Folded => folded(bytes),
        Format::Cpuprofile => cpuprofile(bytes),
        Format::Otlp => otlp::stacks(bytes),
        Format::Chrome => chrome(bytes),
    }
}

fn place(value: &Value) -> Option<usize> {
    value.as_u64().map(|it| usize::try_from(it).expect("a place"))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// All samples; and that the columns of tables are equally long.
fn firefox(bytes: &[u8]) -> Stacks {
    let file: Value = serde_json::from_slice(bytes).expect("JSON");
    let shared = &file["shared"];
    for table in shared.as_object().expect("tables").values().filter(|it| it.is_object()) {
        for (name, column) in table.as_object().expect("a table") {
            if let Some(column) = column.as_array() {
                assert_eq!(Some(column.len()), place(&table["length"]), "{name}");
            }
        }
    }
    let (stacks, frames) = (&shared["stackTable"], &shared["frameTable"]);
    let mut counts = Stacks::new();
    for thread in array(&file["threads"]) {
        let mut last = 0.0;
        for (stack, time) in
            array(&thread["samples"]["stack"]).iter().zip(array(&thread["samples"]["time"]))
        {
            let time = time.as_f64().expect("a time");
            assert!(time >= last, "sorted");
            last = time;
            let mut lines = Vec::new();
            let mut next = place(stack);
            while let Some(stack) = next {
                let frame = place(&stacks["frame"][stack]).expect("a frame");
                let function = place(&frames["func"][frame]).expect("a function");
                let name = place(&shared["funcTable"]["name"][function]).expect("a name");
                let line = frames["line"][frame].as_u64().unwrap_or(0);
                lines.push((text(&shared["stringArray"][name]), line));
                next = place(&stacks["prefix"][stack]);
                assert!(next.is_none_or(|parent| parent < stack), "callers come first");
            }
            *counts.entry(lines).or_default() += 1;
        }
    }
    counts
}

/// All samples; and that weights fill the time of each thread.
fn speedscope(bytes: &[u8]) -> Stacks {
    let file: Value = serde_json::from_slice(bytes).expect("JSON");
    let mut counts = Stacks::new();
    for profile in array(&file["profiles"]) {
        let weights = array(&profile["weights"]);
        let sum: u64 = weights.iter().map(number).sum();
        let value = |name: &str| number(&profile[name]);
        assert_eq!(sum, value("endValue") - value("startValue"));
        assert_eq!(weights.len(), array(&profile["samples"]).len());
        for sample in array(&profile["samples"]) {
            let names = array(sample).iter().rev();
            let name = |frame| {
                let place = place(frame).expect("a frame");
                (text(&file["shared"]["frames"][place]["name"]), 0)
            };
            let lines: Vec<_> = names.map(name).collect();
            if !lines.is_empty() {
                *counts.entry(lines).or_default() += 1;
            }
        }
    }
    counts
}

/// Lines of text.
fn folded(bytes: &[u8]) -> Stacks {
    let mut counts = Stacks::new();
    for line in std::str::from_utf8(bytes).expect("UTF-8").lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        let lines = stack.split(';').rev().map(|name| (name.to_owned(), 0)).collect();
        *counts.entry(lines).or_default() += count.parse::<u64>().expect("a number");
    }
    counts
}

/// The stack of each node, from what is above it.
fn walk(nodes: &HashMap<u64, (Option<u64>, String)>, id: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut next = Some(id);
    while let Some((parent, name)) = next.map(|id| &nodes[&id]) {
        if !["(root)", "(idle)"].contains(&name.as_str()) {
            lines.push((name.clone(), 0));
        }
        next = *parent;
    }
    lines
}

/// The samples of its thread; and that hits and lines are as many, and times as long as the profile.
fn cpuprofile(bytes: &[u8]) -> Stacks {
    let file: Value = serde_json::from_slice(bytes).expect("JSON");
    let mut nodes = HashMap::new();
    let mut hits = HashMap::new();
    for node in array(&file["nodes"]) {
        let id = number(&node["id"]);
        let parent = nodes.get(&id).and_then(|(parent, _)| *parent);
        nodes.insert(id, (parent, text(&node["callFrame"]["functionName"])));
        for child in array(&node["children"]) {
            let name = String::new();
            nodes.insert(number(child), (Some(id), name));
        }
        let is_idle = node["callFrame"]["functionName"] == "(idle)";
        hits.insert(id, if is_idle { 0 } else { number(&node["hitCount"]) });
        if let Some(ticks) = node.get("positionTicks") {
            let sum: u64 = array(ticks).iter().map(|it| number(&it["ticks"])).sum();
            assert!(sum <= hits[&id]);
        }
    }
    let mut counts = Stacks::new();
    for sample in array(&file["samples"]) {
        let id = number(sample);
        let lines = walk(&nodes, id);
        if !lines.is_empty() {
            *counts.entry(lines).or_default() += 1;
            *hits.get_mut(&id).expect("a node") -= 1;
        }
    }
    assert!(hits.values().all(|hits| *hits == 0));
    let deltas: u64 = array(&file["timeDeltas"]).iter().map(number).sum();
    let time = |name: &str| number(&file[name]);
    assert!(time("startTime") + deltas <= time("endTime"));
    assert_eq!(array(&file["timeDeltas"]).len(), array(&file["samples"]).len());
    counts
}

/// The samples of all threads.
fn chrome(bytes: &[u8]) -> Stacks {
    let file: Value = serde_json::from_slice(bytes).expect("JSON");
    let mut nodes: HashMap<String, HashMap<u64, (Option<u64>, String)>> = HashMap::new();
    let mut counts = Stacks::new();
    for event in array(&file["traceEvents"]) {
        if event["name"] != "ProfileChunk" {
            continue;
        }
        let nodes = nodes.entry(text(&event["id"])).or_default();
        let data = &event["args"]["data"];
        for node in array(&data["cpuProfile"]["nodes"]) {
            let id = number(&node["id"]);
            let parent = node.get("parent").and_then(Value::as_u64);
            assert!(parent.is_none_or(|parent| nodes.contains_key(&parent)), "callers come first");
            let name = text(&node["callFrame"]["functionName"]);
            assert!(nodes.insert(id, (parent, name)).is_none(), "each node once");
        }
        let samples = array(&data["cpuProfile"]["samples"]);
        assert_eq!(samples.len(), array(&data["timeDeltas"]).len());
        for sample in samples {
            let lines = walk(nodes, number(sample));
            if !lines.is_empty() {
                *counts.entry(lines).or_default() += 1;
            }
        }
    }
    counts
}

/// Calls `each` with every object in a value.
pub fn each_object(value: &Value, each: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_object(item, each)),
        Value::Object(object) => {
            each(object);
            object.values().for_each(|item| each_object(item, each));
        }
        _ => {}
    }
}
