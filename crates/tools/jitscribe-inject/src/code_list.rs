//! The list of codes that is written beside the images: when each compilation of a sampled function was loaded and gone.
//!
//! Images show code at addresses, without times, and without code that another one hides. A profile wants both: see "The list of codes" in
//! `docs/apply.md`, which has the format. Most code of a process belongs to functions that were never sampled, and is left out.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use code_timeline::{AddressSpaceId, CodeId};
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::code_table::{CodeTable, Origin};
use super::files::code_list_name;
use super::function_name::function_hash;
use super::images::Images;
use super::output::Output;
use super::plan::Plan;
use super::recording_index::RecordingIndex;
use super::top::Hits;
use super::{Error, Result};

/// No more codes are listed for a recording.
const MOST: usize = 1 << 16;
/// No more images are listed for a code.
const MOST_IMAGES: usize = 64;
/// Longer symbols are cut off.
const LONGEST_SYMBOL: usize = 1 << 12;

/// When codes were there.
#[derive(Debug, Default)]
pub struct CodeList {
    codes: Vec<ListedCode>,
}

#[derive(Debug)]
struct ListedCode {
    space: AddressSpaceId,
    code: CodeId,
    loaded: u64,
    gone: u64,
}

impl CodeList {
    /// The codes of the functions that were sampled.
    pub fn of(table: &CodeTable<'_>, hits: &Hits) -> Self {
        let functions: FxHashSet<u32> = hits.seen().map(|code| table.function(code)).collect();
        let mut codes: Vec<ListedCode> = Vec::new();
        for (space, timeline) in table.history.timelines() {
            let mut places: HashMap<CodeId, usize, FxBuildHasher> = HashMap::default();
            for piece in timeline.pieces() {
                if !functions.contains(&table.function(piece.code)) {
                    continue;
                }
                if let Some(code) = places.get(&piece.code).and_then(|&place| codes.get_mut(place))
                {
                    code.loaded = code.loaded.min(piece.since);
                    code.gone = code.gone.max(piece.until);
                } else if codes.len() < MOST {
                    places.insert(piece.code, codes.len());
                    let (loaded, gone) = (piece.since, piece.until);
                    codes.push(ListedCode { space, code: piece.code, loaded, gone });
                }
            }
        }
        // Codes are read again in the order of the file.
        codes.sort_by_key(|code| (code.space, code.code));
        Self { codes }
    }

    /// Writes a file for each process with images into their folder.
    ///
    /// # Errors
    /// If one cannot be written, or a dump cannot be read any more.
    pub fn write(
        &self,
        folder: &Path,
        replace: bool,
        (plan, images): (&Plan, &Images),
        index: &RecordingIndex,
        table: &CodeTable<'_>,
        hits: &Hits,
    ) -> Result<()> {
        let places = images_of_codes(plan, images);
        let mut texts: BTreeMap<u32, String> = BTreeMap::new();
        for arena in &plan.arenas {
            let text = texts.entry(index.processes.pid(arena.space)).or_default();
            if text.is_empty() {
                text.push_str("{\"format\":\"jitscribe codes\",\"version\":1}\n");
            }
        }
        let mut reader = table.reader();
        for listed in &self.codes {
            let Some(text) = texts.get_mut(&index.processes.pid(listed.space)) else { continue };
            let code = *table.history.code(listed.code);
            let (symbol, tier) = match table.name_without_dump(listed.code) {
                Some(name) => (code_image::symbol_name(name), Vec::new()),
                None => match reader.load(&code)? {
                    Some(load) => {
                        let tier = load.tier().map(<[u8]>::to_vec).unwrap_or_default();
                        (code_image::symbol_name(load.name), tier)
                    }
                    None => continue,
                },
            };
            text.push_str("{\"symbol\":");
            push_string(symbol.get(..LONGEST_SYMBOL).unwrap_or(&symbol), text);
            text.push_str(",\"tier\":");
            push_string(&tier, text);
            // A string takes no errors.
            _ = write!(text, ",\"address\":{},\"size\":{}", code.address, code.size);
            if listed.loaded > 0 {
                _ = write!(text, ",\"loaded\":{}", listed.loaded);
            }
            if listed.gone < u64::MAX {
                _ = write!(text, ",\"gone\":{}", listed.gone);
            }
            _ = write!(text, ",\"samples\":{},\"images\":[", hits.in_code(listed.code));
            let places = places.get(&(listed.space, listed.code)).map(Vec::as_slice);
            for (at, &(image, moved_by)) in places.unwrap_or_default().iter().enumerate() {
                let Some(image) = images.written.get(image) else { continue };
                let name = image.path.file_name().unwrap_or_default().to_string_lossy();
                let comma = if at > 0 { "," } else { "" };
                // In the file, addresses are offsets.
                let text_of = &image.finished.text;
                let bias = text_of.address.wrapping_sub(text_of.file_offset);
                let address = code.address.wrapping_add(moved_by).wrapping_sub(bias);
                _ = write!(text, "{comma}[\"{name}\",{address}]");
            }
            text.push_str("]}\n");
        }
        for (pid, text) in texts {
            let path = folder.join(code_list_name(pid));
            let mut output = Output::create(&path, replace)?;
            let mut file = BufWriter::new(output.file());
            file.write_all(text.as_bytes())
                .and_then(|()| file.flush())
                .map_err(Error::file(&path))?;
            drop(file);
            output.finish()?;
        }
        Ok(())
    }
}

/// The images of each code, by their numbers, and how far addresses in them are behind those in the process.
type ImagesOfCodes = HashMap<(AddressSpaceId, CodeId), Vec<(usize, u64)>, FxBuildHasher>;

fn images_of_codes(plan: &Plan, images: &Images) -> ImagesOfCodes {
    let mut all = ImagesOfCodes::default();
    let planned = plan.arenas.iter().flat_map(|arena| {
        let space = arena.space;
        arena.images.iter().map(move |image| (space, image))
    });
    for (number, (space, image)) in planned.enumerate().take(images.written.len()) {
        for shown in &image.shown {
            let places = all.entry((space, shown.code)).or_default();
            let place = (number, shown.moved_by);
            if places.len() < MOST_IMAGES && !places.contains(&place) {
                places.push(place);
            }
        }
    }
    all
}

/// Appends a string of JSON. Bytes that are no text are replaced.
fn push_string(bytes: &[u8], out: &mut String) {
    out.push('"');
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\0'..=' ' if character != ' ' => {
                _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

impl CodeTable<'_> {
    /// What the function of a code is recognized by.
    fn function(&self, code: CodeId) -> u32 {
        match self.history.code(code).origin {
            Origin::Dump(load) => self.function_of_load(load),
            Origin::Map(_) | Origin::Inferred(_) => {
                self.name_without_dump(code).map_or(0, function_hash)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut text = String::new();
        push_string(b"a\"b\\c\nd\xff \x1b", &mut text);
        assert_eq!(text, "\"a\\\"b\\\\c\\u000ad\u{fffd} \\u001b\"");
    }
}
