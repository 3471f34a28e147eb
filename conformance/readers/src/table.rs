//! The table in `docs/format.md`.

use std::fmt::Write as _;

use jitdump_conformance::{Case, Verdict};

/// The line before the table.
pub const BEGIN: &str = "<!-- conformance: begin. Made by `UPDATE_CONFORMANCE=1 cargo test -p conformance-readers`. -->";
/// The line after the table.
pub const END: &str = "<!-- conformance: end -->";

/// The table of all files, with a column for each reader.
pub fn table(cases: &[Case], readers: &[(&str, Vec<Verdict>)]) -> String {
    let mut text = String::from("| File | Rule |");
    for (name, _) in readers {
        let _ = write!(text, " {name} |");
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(readers.len()));
    text.push('\n');
    for (number, case) in cases.iter().enumerate() {
        let _ = write!(text, "| `{}` | {} |", case.name, case.rule);
        for (_, verdicts) in readers {
            let cell = match &verdicts[number] {
                Verdict::Passes => "yes",
                Verdict::Differs(_) => "**no**",
                Verdict::CannotSay(_) => "–",
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    let _ = write!(text, "| | passed of {} |", cases.len());
    for (_, verdicts) in readers {
        let passed = verdicts.iter().filter(|verdict| **verdict == Verdict::Passes).count();
        let _ = write!(text, " {passed} |");
    }
    text.push('\n');
    text
}
