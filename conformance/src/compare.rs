//! Compares what a reader printed with what a correct reader finds.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::case::Case;

/// How a reader did on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It finds what a correct reader finds, in all fields that it reports.
    Passes,
    /// It finds something else. The first difference.
    Differs(String),
    /// It does not report a field that the rule is about.
    CannotSay(&'static str),
}

/// The fields of events that a reader must report if it reports events at all.
const ALWAYS: [&str; 1] = ["event"];

/// All fields that a reader may report.
pub const FIELDS: [&str; 24] = [
    "header",
    "end",
    "left_out",
    "log",
    "damage",
    "move",
    "close",
    "time",
    "pid",
    "tid",
    "address",
    "size",
    "index",
    "name",
    "bytes",
    "lines",
    "columns",
    "ir_lines",
    "inlined",
    "unwind",
    "kind",
    "tier",
    "died",
    "frame_pointer",
];

/// Compares a reading with the expected one of a case.
pub(crate) fn judge(case: &Case, printed: &Value) -> Verdict {
    let Some(fields) = printed.get("fields").and_then(Value::as_array) else {
        return Verdict::Differs("the reader printed no list of fields".to_owned());
    };
    let fields: BTreeSet<&str> = fields.iter().filter_map(Value::as_str).collect();
    if let Some(missing) = case.needs.iter().find(|need| !fields.contains(*need)) {
        return Verdict::CannotSay(missing);
    }
    if !printed["events"].is_array() {
        return Verdict::Differs("the reader printed no list of events".to_owned());
    }
    let expected = case.json();
    if expected["header"].is_null() != printed["header"].is_null() {
        let what = if expected["header"].is_null() { "is read" } else { "is refused" };
        return Verdict::Differs(format!("the file {what}"));
    }
    for name in ["header", "left_out", "end"] {
        if fields.contains(name) && expected[name] != printed[name] {
            return Verdict::Differs(format!(
                "{name}: {} instead of {}",
                printed[name], expected[name]
            ));
        }
    }
    let is_log = case.name.ends_with(".log");
    let (wanted, found) = (events(&expected, &fields, is_log), events(printed, &fields, is_log));
    for (number, wanted) in wanted.iter().enumerate() {
        let Some(found) = found.get(number) else {
            return Verdict::Differs(format!("event {number} is missing: {wanted}"));
        };
        if let Some(difference) = difference(wanted, found) {
            return Verdict::Differs(format!("event {number}: {difference}"));
        }
    }
    match found.get(wanted.len()) {
        Some(more) => Verdict::Differs(format!("one event too many: {more}")),
        None => Verdict::Passes,
    }
}

fn difference(wanted: &Value, found: &Value) -> Option<String> {
    let empty = Map::new();
    let wanted = wanted.as_object().unwrap_or(&empty);
    let found = found.as_object().unwrap_or(&empty);
    let names: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    names.into_iter().find(|name| wanted.get(*name) != found.get(*name)).map(|name| {
        let shown =
            |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
        format!("{name}: {} instead of {}", shown(found.get(name)), shown(wanted.get(name)))
    })
}

/// The events, with those fields only that the reader reports. Damage counts once in a row.
fn events(reading: &Value, fields: &BTreeSet<&str>, is_log: bool) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    for event in reading["events"].as_array().into_iter().flatten() {
        let kind = event["event"].as_str().unwrap_or_default();
        let is_reported = kind == "load" || fields.contains(kind);
        if !is_reported || (kind == "damage" && events.last() == Some(event)) {
            continue;
        }
        let mut kept = event.as_object().cloned().unwrap_or_default();
        let names = |name: &String| {
            ALWAYS.contains(&name.as_str())
                || fields.contains(name.as_str())
                || (kind == "move" && name.ends_with("address"))
        };
        kept.retain(|name, _| names(name));
        if !fields.contains("columns") {
            let lines = kept.get_mut("lines").and_then(Value::as_array_mut);
            for line in lines.into_iter().flatten().filter_map(Value::as_object_mut) {
                line.remove("column");
            }
        }
        events.push(Value::Object(kept));
    }
    if is_log {
        // A log has no order; readers of dumps print the order of the file.
        events.sort_by_key(|event| {
            let is_damage = event["event"] == "damage";
            (is_damage, event["time"].as_u64(), event["address"].to_string())
        });
        events.dedup_by(|a, b| a["event"] == "damage" && b["event"] == "damage");
    }
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cases::all;

    /// The expected reading as a reader of all fields would print it.
    fn printed(case: &Case) -> Value {
        let mut reading = case.json();
        reading["fields"] = json!(FIELDS);
        reading
    }

    /// Every value in `value`, by its path.
    fn paths(value: &Value, path: &str, all: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, value)| paths(value, &format!("{path}/{name}"), all));
            }
            Value::Array(list) if !list.is_empty() => {
                list.iter()
                    .enumerate()
                    .for_each(|(n, value)| paths(value, &format!("{path}/{n}"), all));
            }
            _ => all.push(path.to_owned()),
        }
    }

    #[test]
    fn each_value_counts() {
        let mut changed = 0;
        for case in all() {
            let right = printed(&case);
            assert_eq!(judge(&case, &right), Verdict::Passes, "{}", case.name);
            for part in ["header", "events", "left_out", "end"] {
                let mut all = Vec::new();
                paths(&right[part], &format!("/{part}"), &mut all);
                // Files of many alike codes take long.
                for path in all.iter().step_by(all.len() / 40 + 1) {
                    let mut wrong = right.clone();
                    *wrong.pointer_mut(path).expect("it is there") = json!("something else");
                    let verdict = judge(&case, &wrong);
                    assert!(matches!(verdict, Verdict::Differs(_)), "{}: {path}", case.name);
                    changed += 1;
                }
            }
            let mut fewer = right.clone();
            if fewer["events"].as_array_mut().expect("events").pop().is_some() {
                assert!(matches!(judge(&case, &fewer), Verdict::Differs(_)), "{}", case.name);
            }
        }
        assert!(changed > 1000);
    }

    #[test]
    fn fields_that_a_reader_does_not_report_do_not_count() {
        let case = all().into_iter().find(|case| case.name == "load.dump").expect("a file");
        let mut reading = printed(&case);
        reading["fields"] = json!(["name", "bytes"]);
        reading["events"][0]["tid"] = json!(0);
        assert_eq!(judge(&case, &reading), Verdict::Passes);
        reading["fields"] = json!(["name"]);
        assert_eq!(judge(&case, &reading), Verdict::CannotSay("bytes"));
    }
}
