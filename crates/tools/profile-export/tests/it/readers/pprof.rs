//! The messages of pprof's `profile.proto`, as far as they are compared.

use std::collections::HashMap;
use std::io::Read;

use prost::Message;

use super::Stacks;

#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub kind: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Label {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub text: i64,
    #[prost(int64, tag = "3")]
    pub number: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub start: u64,
    #[prost(uint64, tag = "3")]
    pub limit: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
}

/// Reads a file.
pub fn profile(bytes: &[u8]) -> Profile {
    let mut raw = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut raw).expect("gzip");
    Profile::decode(&raw[..]).expect("a profile")
}

impl Profile {
    /// A string.
    pub fn text(&self, number: i64) -> &str {
        &self.string_table[usize::try_from(number).expect("a number")]
    }

    /// The values of a sample's labels by key: the text, or the number.
    pub fn labels(&self, sample: &Sample) -> HashMap<String, String> {
        let value = |label: &Label| match label.text {
            0 => label.number.to_string(),
            text => self.text(text).to_owned(),
        };
        sample.label.iter().map(|it| (self.text(it.key).to_owned(), value(it))).collect()
    }

    /// How often each stack was sampled, by all events.
    pub fn stacks(&self) -> Stacks {
        let locations: HashMap<u64, &Location> =
            self.location.iter().map(|it| (it.id, it)).collect();
        let functions: HashMap<u64, &Function> =
            self.function.iter().map(|it| (it.id, it)).collect();
        let mut counts = Stacks::new();
        for sample in &self.sample {
            assert_eq!(sample.value.len(), self.sample_type.len());
            let lines = sample.location_id.iter().flat_map(|id| &locations[id].line);
            let lines = lines.map(|line| {
                let name = self.text(functions[&line.function_id].name);
                (name.to_owned(), line.line.cast_unsigned())
            });
            let count: i64 = sample.value.iter().step_by(2).sum();
            *counts.entry(lines.collect()).or_default() += count.cast_unsigned();
        }
        counts
    }
}
