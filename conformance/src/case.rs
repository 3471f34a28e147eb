//! A file with what a correct reader finds in it.

use serde_json::{Value, json};

use crate::bytes::Bytes;
use crate::reading::{Code, close, damage};
use crate::records::Header;

/// A file with what a correct reader finds in it. `case` begins one; its methods write to the file, and add what is
/// found there.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file's name. It says the rule; its extension is `dump`, or `log` for the memory of a code log.
    pub name: String,
    /// The rule as a sentence.
    pub rule: &'static str,
    /// The fields that the rule is about. A reader that does not report one of them is not judged by this file.
    pub needs: &'static [&'static str],
    pub(crate) file: Bytes,
    /// `None` if the file is refused.
    header: Option<Value>,
    /// In the order of the file; in a code log, in the order of time.
    events: Vec<Value>,
    /// Codes that were left out: how many, and the first and the last time.
    left_out: Option<[u64; 3]>,
    end: Option<&'static str>,
}

/// A jitdump with the usual header, and a rule about the names of its codes.
pub(crate) fn case(name: &str, rule: &'static str) -> Case {
    let header = Header::default();
    Case {
        name: format!("{name}.dump"),
        rule,
        needs: &["name"],
        file: header.file(),
        header: Some(header.json()),
        events: Vec::new(),
        left_out: None,
        end: Some("complete"),
    }
}

impl Case {
    pub(crate) fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    /// Replaces all of the file by a header.
    pub(crate) fn header(self, header: Header) -> Self {
        Self { file: header.file(), header: Some(header.json()), ..self }
    }

    /// Writes what no event comes of.
    pub(crate) fn write(mut self, write: impl FnOnce(&mut Bytes) -> &mut Bytes) -> Self {
        write(&mut self.file);
        self
    }

    /// Adds an event for what was written.
    pub(crate) fn finds(mut self, event: Value) -> Self {
        self.events.push(event);
        self
    }

    pub(crate) fn load(self, code: &Code) -> Self {
        self.write(|file| file.load(code)).finds(code.event())
    }

    pub(crate) fn group(self, code: &Code) -> Self {
        self.write(|file| file.group(code)).finds(code.event())
    }

    pub(crate) fn close(self, time: u64) -> Self {
        self.write(|file| file.close(time)).finds(close(time))
    }

    /// Writes bytes that are no record, or a record that cannot be read.
    pub(crate) fn damage(self, write: impl FnOnce(&mut Bytes) -> &mut Bytes) -> Self {
        self.write(write).finds(damage())
    }

    pub(crate) fn left_out(self, left_out: [u64; 3]) -> Self {
        Self { left_out: Some(left_out), ..self }
    }

    /// The file does not end with a complete record.
    pub(crate) fn ends(self, end: &'static str) -> Self {
        Self { end: Some(end), ..self }
    }

    /// The file is no jitdump, or has an unknown version.
    pub(crate) fn refused(self) -> Self {
        Self { header: None, events: Vec::new(), end: None, ..self }
    }

    /// The memory of a code log instead of a jitdump.
    pub(crate) fn log(self, file: Bytes) -> Self {
        Self { name: self.name.replace(".dump", ".log"), file, ..self }
    }

    pub(crate) fn sort_by_time(&mut self) {
        self.events.sort_by_key(|event| event["time"].as_u64());
    }

    /// The expected reading as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "rule": self.rule,
            "needs": self.needs,
            "header": self.header,
            "events": self.events,
            "left_out": self.left_out.map(|[count, first, last]| {
                json!({ "count": count, "first": first, "last": last })
            }),
            "end": self.end,
        })
    }

    /// The expected reading as text: a line for each field, and for each event.
    pub(crate) fn text(&self) -> String {
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
