//! The sources that were sampled, as columns.

use std::cmp::Reverse;

use printable::Hexadecimal;
use profile::{CodeSource, FrameId, FunctionId, Profile, Totals};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use crate::columns::Columns;
use crate::options::Options;
use crate::summary::Summary;
use crate::text::{self, Texts, shown};

/// Adds the source files that samples are in, those with the most samples first.
#[expect(clippy::too_many_arguments, reason = "what a report consists of")]
pub fn add<'p>(
    profile: &Profile,
    totals: &Totals,
    file_of: &dyn Fn(FunctionId) -> &'p [u8],
    source: &mut dyn CodeSource,
    options: &Options,
    summary: &mut Summary,
    texts: &mut Texts,
    columns: &mut Columns,
) {
    // The most sampled files first, so that others are left out.
    let mut samples: FxHashMap<&[u8], u64> = FxHashMap::default();
    for (number, frame) in (0..).zip(profile.frames()) {
        let file = file_of(frame.function);
        let count = totals.of_frame(FrameId(number));
        // Where no lines are known, the definition is shown or, if that is not known, the file.
        if !file.is_empty() && count.total > 0 {
            let weight = count.own.saturating_mul(1 << 16).saturating_add(count.total);
            let all = samples.entry(file).or_default();
            *all = all.saturating_add(weight);
        }
    }
    let mut files: Vec<(&[u8], u64)> = samples.into_iter().collect();
    files.sort_by_key(|&(file, count)| (Reverse(count), file));
    let mut lines = Vec::new();
    let mut rows: Vec<(u32, u32, bool, String)> = Vec::new();
    let mut left = options.most_source_bytes;
    for (file, _) in files {
        let Some(text) = source.source(file) else {
            summary.sources_unknown = summary.sources_unknown.saturating_add(1);
            continue;
        };
        // A text of short lines takes more than its bytes.
        let ends = text.text.iter().filter(|byte| **byte == b'\n').count();
        let size = text.text.len().max(size_of::<String>().saturating_mul(ends));
        let Some(rest) = left.checked_sub(size) else {
            summary.sources_left_out = summary.sources_left_out.saturating_add(1);
            continue;
        };
        left = rest;
        let before = lines.len();
        let all = text.text.strip_suffix(b"\n").unwrap_or(&text.text);
        lines.extend(all.split(|&byte| byte == b'\n').map(|line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            text::line(line)
        }));
        let count = u32::try_from(lines.len().saturating_sub(before)).unwrap_or(0);
        let hash = Hexadecimal(&Sha256::digest(&text.text)).to_string();
        rows.push((texts.number(&shown(file)), count, text.is_newer, hash));
    }
    summary.sources = rows.len();
    columns.u32("source.file", rows.iter().map(|row| row.0));
    columns.u32("source.lines", rows.iter().map(|row| row.1));
    columns.u32("source.newer", rows.iter().map(|row| u32::from(row.2)));
    columns.text("source.hash", rows.iter().map(|row| row.3.as_str()));
    columns.text("line.text", lines.iter().map(String::as_str));
}
