//! Machine code and sources: those that were sampled, as columns.

use profile::{CodeSource, FunctionId, Profile, Totals};
use serde_json::{Map, Value, json};

use crate::columns::Columns;
use crate::options::Options;
use crate::summary::Summary;
use crate::text::{Texts, shown};
use crate::{listings, sources};

/// The code as the page reads it. What was put in, and what was left out, is added to `summary`.
pub fn bytes(
    profile: &Profile,
    source: &mut dyn CodeSource,
    options: &Options,
    summary: &mut Summary,
) -> Vec<u8> {
    let totals = Totals::all(profile);
    let mut columns = Columns::default();
    let mut texts = Texts::default();
    let mut files =
        listings::add(profile, &totals, source, options, summary, &mut texts, &mut columns);
    let file_of = |id: FunctionId| {
        let known = profile.text(profile.file_of(id));
        if known.is_empty() { files.get(&id).map(Vec::as_slice).unwrap_or_default() } else { known }
    };
    sources::add(profile, &totals, &file_of, source, options, summary, &mut texts, &mut columns);
    // The page has the files of functions themselves.
    for id in profile.function_ids() {
        let of_lines = profile.file_of(id);
        if of_lines != profile.function(id).file {
            files.insert(id, profile.text(of_lines).to_vec());
        }
    }
    let mut rows: Vec<_> = files.iter().collect();
    rows.sort();
    columns.u32("file.function", rows.iter().map(|row| row.0.0));
    columns.u32("file.file", rows.iter().map(|row| texts.number(&shown(row.1))));
    columns.text("string.text", texts.iter());
    let about = json!({
        "listingsLeftOut": summary.listings_left_out,
        "listingsUnknown": summary.listings_unknown,
        "sourcesLeftOut": summary.sources_left_out,
        "sourcesUnknown": summary.sources_unknown,
    });
    let about = if let Value::Object(about) = about { about } else { Map::new() };
    columns.finish(about)
}
