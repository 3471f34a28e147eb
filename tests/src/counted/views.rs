//! The samples of each view, read as its readers read them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::decode::{Columns, Field, fields, gunzip};

/// Samples by function: in it, and in it or what it called.
#[derive(Debug, Default)]
pub struct Counts {
    /// Number of samples.
    pub samples: u64,
    functions: BTreeMap<String, (u64, u64)>,
}

impl Counts {
    /// Of stacks, with the number of samples of each. The innermost function is the first.
    pub fn of(stacks: impl IntoIterator<Item = (Vec<String>, u64)>) -> Self {
        let mut all = Self::default();
        for (stack, samples) in stacks {
            all.samples += samples;
            if let Some(first) = stack.first() {
                all.functions.entry(first.clone()).or_default().0 += samples;
            }
            for function in stack.into_iter().collect::<BTreeSet<String>>() {
                all.functions.entry(function).or_default().1 += samples;
            }
        }
        all
    }

    /// Of a function: its own samples, and with those in what it called.
    pub fn of_function(&self, function: &str) -> (u64, u64) {
        self.functions.get(function).copied().unwrap_or_default()
    }
}

fn parse(json: &[u8]) -> Value {
    serde_json::from_slice(json).expect("JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn number(value: &Value) -> usize {
    let number = value.as_u64().unwrap_or_else(|| panic!("{value} is no number"));
    usize::try_from(number).expect("a small number")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// A row and those above it, by the place of the row above each.
fn upwards(from: usize, above: impl Fn(usize) -> Option<usize>) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(from), move |&row| above(row))
}

/// Functions are labelled by their numbers.
pub fn page(html: &[u8]) -> Counts {
    let columns = Columns::of_page(html, "profile");
    let (up, frames) = (columns.numbers("stack.up"), columns.numbers("stack.frame"));
    let functions = columns.numbers("frame.function");
    let above = |stack: usize| (up[stack] > 0).then(|| stack - up[stack]);
    Counts::of(columns.numbers("sample.stack").into_iter().map(|stack| {
        let functions = upwards(stack, above).map(|stack| functions[frames[stack]].to_string());
        (functions.collect(), 1)
    }))
}

/// The samples of each activity that the page shows, of all samples.
pub fn page_activities(html: &[u8]) -> BTreeMap<String, u64> {
    let about = Columns::of_page(html, "profile").about;
    let parts = list(&list(&about["activities"])[0]).iter();
    parts.map(|part| (text(&part[0]), part[1].as_u64().expect("a number"))).collect()
}

/// Functions are labelled by their names. A run of a function without a name is one frame with its length: `[unknown] ×127`.
pub fn folded(lines: &[u8]) -> Counts {
    let lines = String::from_utf8_lossy(lines);
    Counts::of(lines.lines().map(|line| {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        let label = |name: &str| {
            let mark = ["_[j]", "_[i]", "_[k]", "_[0]"].iter().find_map(|it| name.strip_suffix(it));
            let name = mark.unwrap_or(name);
            let run = name.rsplit_once(" ×").filter(|(name, _)| name.starts_with('['));
            run.map_or(name, |(name, _)| name).to_owned()
        };
        // The first name is that of the process.
        let names = stack.split(';').skip(1).map(label);
        (names.collect::<Vec<_>>().into_iter().rev().collect(), count.parse().expect("a number"))
    }))
}

/// Functions are labelled by their keys.
pub fn speedscope(json: &[u8]) -> Counts {
    let file = parse(json);
    let keys: Vec<String> =
        list(&file["shared"]["frames"]).iter().map(|frame| text(&frame["functionKey"])).collect();
    let samples = list(&file["profiles"]).iter().flat_map(|thread| list(&thread["samples"]));
    // Idle time has no stack.
    let samples = samples.map(list).filter(|stack| !stack.is_empty());
    Counts::of(
        samples.map(|stack| {
            (stack.iter().rev().map(|frame| keys[number(frame)].clone()).collect(), 1)
        }),
    )
}

/// Functions are labelled by their numbers.
pub fn firefox(json: &[u8]) -> Counts {
    let file = parse(json);
    let shared = &file["shared"];
    let (stacks, frames) = (&shared["stackTable"], &shared["frameTable"]);
    let above =
        |stack: usize| stacks["prefix"][stack].as_u64().map(|_| number(&stacks["prefix"][stack]));
    let function = |stack: usize| frames["func"][number(&stacks["frame"][stack])].to_string();
    let samples =
        list(&file["threads"]).iter().flat_map(|thread| list(&thread["samples"]["stack"]));
    Counts::of(samples.map(|stack| (upwards(number(stack), above).map(function).collect(), 1)))
}

/// The number of the node that stands for idle time in V8's formats.
const IDLE: usize = 2;

/// The keys of functions on the stack that ends with a node of V8's formats, whose root has none.
fn keys(nodes: &BTreeMap<usize, (Option<usize>, Value)>, node: usize) -> Vec<String> {
    let nodes = upwards(node, |node| nodes[&node].0).map(|node| &nodes[&node].1);
    nodes.filter_map(|frame| frame["functionKey"].as_str()).map(str::to_owned).collect()
}

/// Functions are labelled by their keys.
pub fn chrome(json: &[u8]) -> Counts {
    let file = parse(json);
    let mut nodes: BTreeMap<String, BTreeMap<usize, (Option<usize>, Value)>> = BTreeMap::new();
    let mut stacks = Vec::new();
    for event in list(&file["traceEvents"]).iter().filter(|event| event["name"] == "ProfileChunk") {
        let thread = nodes.entry(text(&event["id"])).or_default();
        let chunk = &event["args"]["data"]["cpuProfile"];
        for node in list(&chunk["nodes"]) {
            let parent = node["parent"].as_u64().map(|_| number(&node["parent"]));
            thread.insert(number(&node["id"]), (parent, node["callFrame"].clone()));
        }
        let samples = list(&chunk["samples"]).iter().map(number).filter(|node| *node != IDLE);
        stacks.extend(samples.map(|node| (keys(thread, node), 1)));
    }
    Counts::of(stacks)
}

/// Functions are labelled by their keys.
pub fn cpuprofile(json: &[u8]) -> Counts {
    let file = parse(json);
    let mut nodes: BTreeMap<usize, (Option<usize>, Value)> = BTreeMap::new();
    let mut parents = BTreeMap::new();
    for node in list(&file["nodes"]) {
        nodes.insert(number(&node["id"]), (None, node["callFrame"].clone()));
        parents.extend(list(&node["children"]).iter().map(|it| (number(it), number(&node["id"]))));
    }
    for (child, parent) in parents {
        nodes.get_mut(&child).expect("a node").0 = Some(parent);
    }
    let hits = list(&file["nodes"]).iter().filter(|node| number(&node["id"]) != IDLE);
    let hits = hits.map(|node| (number(&node["id"]), number(&node["hitCount"]) as u64));
    Counts::of(hits.filter(|(_, hits)| *hits > 0).map(|(node, hits)| (keys(&nodes, node), hits)))
}

/// The numbers in a field of a message.
fn numbers(message: &[u8], field: u32) -> Vec<u64> {
    fields(message).filter(|(it, _)| *it == field).flat_map(|(_, value)| value.numbers()).collect()
}

/// The messages in a field of a message.
fn messages(message: &[u8], field: u32) -> Vec<&[u8]> {
    let of_field = fields(message).filter(|(it, _)| *it == field);
    of_field
        .map(|(_, value)| match value {
            Field::Bytes(bytes) => bytes,
            Field::Number(number) => panic!("{number} is no message"),
        })
        .collect()
}

fn first(message: &[u8], field: u32) -> u64 {
    numbers(message, field).first().copied().unwrap_or_default()
}

/// Functions are labelled by their names. The first value of each event is the number of samples.
pub fn pprof(file: &[u8]) -> Counts {
    let file = gunzip(file);
    let strings = messages(&file, 6);
    let string = |number: u64| String::from_utf8_lossy(strings[number as usize]).into_owned();
    let functions: BTreeMap<u64, String> =
        messages(&file, 5).into_iter().map(|it| (first(it, 1), string(first(it, 2)))).collect();
    // The lines of a location are inlined calls, the innermost first.
    let locations: BTreeMap<u64, Vec<u64>> = messages(&file, 4)
        .into_iter()
        .map(|it| (first(it, 1), messages(it, 4).into_iter().map(|line| first(line, 1)).collect()))
        .collect();
    Counts::of(messages(&file, 2).into_iter().map(|sample| {
        let stack =
            numbers(sample, 1).into_iter().flat_map(|location| locations[&location].clone());
        let samples = numbers(sample, 2).into_iter().step_by(2).sum();
        (stack.map(|function| functions[&function].clone()).collect(), samples)
    }))
}

/// The samples of each activity, by the labels of samples. Those without one are in processes without jitted code.
pub fn pprof_activities(file: &[u8]) -> BTreeMap<String, u64> {
    let file = gunzip(file);
    let strings = messages(&file, 6);
    let string = |number: u64| String::from_utf8_lossy(strings[number as usize]).into_owned();
    let mut samples: BTreeMap<String, u64> = BTreeMap::new();
    for sample in messages(&file, 2) {
        let mut labels = messages(sample, 3).into_iter();
        let label = labels.find(|label| string(first(label, 1)) == "activity");
        let name = label.map(|label| string(first(label, 2)));
        let name = name.unwrap_or_else(|| "processes without jitted code".to_owned());
        *samples.entry(name).or_default() += numbers(sample, 2).into_iter().step_by(2).sum::<u64>();
    }
    samples
}

/// Functions are labelled by their names.
pub fn otlp(request: &[u8]) -> Counts {
    let dictionary = messages(request, 2).into_iter().next().expect("a dictionary");
    let strings = messages(dictionary, 5);
    let functions = messages(dictionary, 3);
    let locations = messages(dictionary, 2);
    let stacks = messages(dictionary, 7);
    let name = |line: &[u8]| {
        let function = functions[first(line, 1) as usize];
        String::from_utf8_lossy(strings[first(function, 1) as usize]).into_owned()
    };
    let resources = messages(request, 1).into_iter();
    let scopes = resources.flat_map(|resource| messages(resource, 2));
    let profiles = scopes.flat_map(|scope| messages(scope, 2));
    Counts::of(profiles.flat_map(|profile| messages(profile, 2)).map(|sample| {
        let of_stack = numbers(stacks[first(sample, 1) as usize], 1).into_iter();
        let lines = of_stack.flat_map(|location| messages(locations[location as usize], 3));
        // With their times, or counted.
        let times: usize = messages(sample, 5).iter().map(|times| times.len() / 8).sum();
        let samples = if times > 0 { times as u64 } else { first(sample, 4) };
        (lines.map(name).collect(), samples)
    }))
}
