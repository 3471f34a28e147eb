//! What the verbs that show recordings have in common: where they print, and their JSON.

use std::path::Path;

use profile_text::Line;
use serde::Serialize;

use crate::text::Out;
use crate::{Result, text};

/// The version of the JSON of `report`, `annotate` and `diff`. It grows when a field is removed or changes its meaning, not when one is added.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Shown<'a, View> {
    schema_version: u32,
    verb: &'static str,
    /// The recordings that are shown.
    recordings: Vec<std::borrow::Cow<'a, str>>,
    #[serde(flatten)]
    view: View,
}

/// Prints a view as JSON on standard output.
pub fn print_json(verb: &'static str, recordings: &[&Path], view: impl Serialize) -> Result<()> {
    let recordings = recordings.iter().map(|path| path.to_string_lossy()).collect();
    let mut out = Out::new();
    out.json_pretty(&Shown { schema_version: SCHEMA_VERSION, verb, recordings, view })?;
    out.finish()
}

/// Prints lines on standard output; on a terminal, through a pager.
pub fn print(lines: &[Line], pager: bool) -> Result<()> {
    let mut out = match pager && text::is_terminal() {
        true => Out::paged(),
        false => Out::new(),
    };
    for line in lines {
        out.styled(line)?;
    }
    out.finish()
}
