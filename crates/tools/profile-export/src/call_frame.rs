//! A function as V8's profiles describe it.

use std::io;

use profile::Profile;

use crate::json::Object;
use crate::options::{Label, short};

/// Writes the fields of a function, or of one that is not of the profile, by its name.
pub fn write_call_frame(
    profile: &Profile,
    label: Result<&Label, &str>,
    frame: &mut Object<'_>,
) -> io::Result<()> {
    let label = match label {
        Ok(label) => label,
        Err(name) => {
            frame.field("functionName", name)?;
            frame.field("scriptId", "0")?;
            frame.field("url", "")?;
            frame.field("lineNumber", -1)?;
            return frame.field("columnNumber", -1);
        }
    };
    let function = profile.function(label.function);
    // V8 counts from 0, and has -1 for what is not known.
    let from_zero = |number: u32| i64::from(number).saturating_sub(1);
    frame.field("functionName", label.name(profile))?;
    // One script for each file.
    frame.field("scriptId", function.file.0.to_string())?;
    frame.field("url", url(profile.text(function.file)))?;
    frame.field("lineNumber", from_zero(function.line))?;
    frame.field("columnNumber", from_zero(function.column))
}

/// A path as a URL, as V8 has those of modules.
fn url(file: &[u8]) -> String {
    if !file.starts_with(b"/") {
        return short(file);
    }
    let mut url = String::from("file://");
    for character in short(file).chars() {
        match character {
            '%' => url.push_str("%25"),
            '?' => url.push_str("%3F"),
            '#' => url.push_str("%23"),
            ' ' => url.push_str("%20"),
            character => url.push(character),
        }
    }
    url
}
