//! The messages of OpenTelemetry's `profiles.proto`, as far as they are compared.

use prost::Message;

use super::Stacks;

#[derive(Clone, PartialEq, Message)]
struct Data {
    #[prost(message, repeated, tag = "1")]
    resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, tag = "2")]
    dictionary: Option<Dictionary>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceProfiles {
    #[prost(message, repeated, tag = "2")]
    scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeProfiles {
    #[prost(message, repeated, tag = "2")]
    profiles: Vec<Profile>,
}

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    time: u64,
    #[prost(uint64, tag = "4")]
    duration: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(int32, tag = "1")]
    stack: i32,
    #[prost(int32, repeated, tag = "2")]
    attributes: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    values: Vec<i64>,
    #[prost(fixed64, repeated, tag = "5")]
    times: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Dictionary {
    #[prost(message, repeated, tag = "2")]
    locations: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    functions: Vec<Function>,
    #[prost(string, repeated, tag = "5")]
    strings: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "7")]
    stacks: Vec<Stack>,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(int32, tag = "1")]
    key: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Stack {
    #[prost(int32, repeated, tag = "1")]
    locations: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(message, repeated, tag = "3")]
    lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    attributes: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(int32, tag = "1")]
    function: i32,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(int32, tag = "1")]
    name: i32,
}

fn at<T>(table: &[T], number: i32) -> &T {
    assert!(number > 0, "the first row means none");
    &table[usize::try_from(number).expect("a number")]
}

/// All samples; and that times are within their profile, and attributes exist.
pub fn stacks(bytes: &[u8]) -> Stacks {
    let data = Data::decode(bytes).expect("a message");
    let dictionary = data.dictionary.expect("a dictionary");
    let mut counts = Stacks::new();
    let scopes = data.resource_profiles.iter().flat_map(|it| &it.scope_profiles);
    for profile in scopes.flat_map(|it| &it.profiles) {
        for sample in &profile.samples {
            let locations = at(&dictionary.stacks, sample.stack).locations.iter();
            let locations: Vec<_> =
                locations.map(|location| at(&dictionary.locations, *location)).collect();
            let on_locations = locations.iter().flat_map(|it| &it.attributes);
            for attribute in sample.attributes.iter().chain(on_locations) {
                assert!(
                    !at(&dictionary.strings, at(&dictionary.attributes, *attribute).key).is_empty()
                );
            }
            let lines = locations.iter().flat_map(|location| &location.lines).map(|line| {
                let name = at(&dictionary.functions, line.function).name;
                let name = dictionary.strings[usize::try_from(name).expect("a number")].clone();
                (name, line.line.cast_unsigned())
            });
            let count = match sample.times.len() {
                0 => sample.values.iter().sum::<i64>().cast_unsigned(),
                times => times as u64,
            };
            for time in &sample.times {
                assert!((profile.time..profile.time + profile.duration).contains(time));
            }
            *counts.entry(lines.collect()).or_default() += count;
        }
    }
    counts
}
