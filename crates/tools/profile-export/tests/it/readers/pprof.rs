//! The messages of pprof's `profile.proto`, as far as they are compared.

use std::collections::HashMap;
use std::io::Read;

use prost::Message;

use super::Stacks;

#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// How many there are is all that is compared.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub sample_type: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
    #[prost(int64, tag = "3")]
    number: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// Reads a file.
pub fn profile(bytes: &[u8]) -> Profile {
    let mut raw = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut raw).expect("gzip");
    Profile::decode(&raw[..]).expect("a profile")
}

impl Profile {
    fn text(&self, number: i64) -> &str {
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
