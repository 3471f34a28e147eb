//! A file with what a correct reader finds in it.

use serde_json::{Value, json};

use crate::bytes::Bytes;
use crate::reading::Code;
use crate::records::Header;

/// A file with what a correct reader finds in it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file's name. It says the rule; its extension is `dump`, or `log` for the memory of a code log.
    pub name: String,
    /// The rule as a sentence.
    pub rule: &'static str,
    /// The fields that the rule is about. A reader that does not report one of them is not judged by this file.
    pub needs: &'static [&'static str],
    /// The file.
    pub bytes: Vec<u8>,
    /// What a correct reader finds.
    pub reading: Reading,
}

/// What a correct reader finds in a file.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The header; `None` if the file is refused.
    pub header: Option<Value>,
    /// The events, in the order of the file; in a code log, in the order of time.
    pub events: Vec<Value>,
    /// Codes that were left out: how many, and the first and the last time.
    pub left_out: Option<[u64; 3]>,
    /// How the file ends.
    pub end: Option<&'static str>,
}

impl Reading {
    /// That of a file that is no jitdump, or an unknown version.
    #[must_use]
    pub fn refused() -> Self {
        Self { header: None, events: Vec::new(), left_out: None, end: None }
    }

    /// That of a file that ends with a complete record.
    #[must_use]
    pub fn of(header: &Header, events: Vec<Value>) -> Self {
        Self { header: Some(header.json()), events, left_out: None, end: Some("complete") }
    }

    /// The same, for a file that ends in another way.
    #[must_use]
    pub fn ends(self, end: &'static str) -> Self {
        Self { end: Some(end), ..self }
    }
}

impl Case {
    /// A file of jitdump records.
    #[must_use]
    pub fn dump(
        name: &str,
        rule: &'static str,
        needs: &'static [&'static str],
        file: Bytes,
        reading: Reading,
    ) -> Self {
        Self { name: format!("{name}.dump"), rule, needs, bytes: file.out, reading }
    }

    /// A file that begins with the usual header, and is whole.
    #[must_use]
    pub fn usual(
        name: &str,
        rule: &'static str,
        needs: &'static [&'static str],
        write: impl FnOnce(&mut Bytes) -> &mut Bytes,
        events: Vec<Value>,
    ) -> Self {
        let header = Header::default();
        let mut file = header.file();
        write(&mut file);
        Self::dump(name, rule, needs, file, Reading::of(&header, events))
    }

    /// A file of these codes, each of which `write` writes completely.
    #[must_use]
    pub fn codes(
        name: &str,
        rule: &'static str,
        needs: &'static [&'static str],
        codes: &[Code],
        write: impl for<'a> Fn(&'a mut Bytes, &Code) -> &'a mut Bytes,
    ) -> Self {
        let events = codes.iter().map(Code::event).collect();
        Self::usual(name, rule, needs, |file| codes.iter().fold(file, write), events)
    }

    /// The same, with another ending.
    #[must_use]
    pub fn ends(mut self, end: &'static str) -> Self {
        self.reading.end = Some(end);
        self
    }

    /// The same, with codes that were left out.
    #[must_use]
    pub fn left_out(mut self, left_out: [u64; 3]) -> Self {
        self.reading.left_out = Some(left_out);
        self
    }

    /// The same, with one event more.
    #[must_use]
    pub fn then(mut self, event: Value) -> Self {
        self.reading.events.push(event);
        self
    }

    /// The expected reading as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let Reading { header, events, left_out, end } = &self.reading;
        json!({
            "rule": self.rule,
            "needs": self.needs,
            "header": header,
            "events": events,
            "left_out": left_out.map(|[count, first, last]| {
                json!({ "count": count, "first": first, "last": last })
            }),
            "end": end,
        })
    }

    /// The expected reading as text: a line for each field, and for each event.
    #[must_use]
    pub fn text(&self) -> String {
        let json = self.json();
        let mut lines = Vec::new();
        for name in ["rule", "needs", "header", "events", "left_out", "end"] {
            let value = &json[name];
            match value.as_array().filter(|events| name == "events" && !events.is_empty()) {
                Some(events) => {
                    let events: Vec<String> =
                        events.iter().map(|event| format!("    {event}")).collect();
                    lines.push(format!("  \"events\": [\n{}\n  ]", events.join(",\n")));
                }
                None => lines.push(format!("  \"{name}\": {value}")),
            }
        }
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }
}
