//! The list of codes that is written beside the images: when each compilation of a sampled function was loaded and gone.
//!
//! Images show code at addresses, without times, and without code that another one hides. A profile wants both: see "The list of codes" in
//! `docs/apply.md`, which has the format. Most code of a process belongs to functions that were never sampled, and is left out.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;

use code_timeline::{AddressSpaceId, CodeId};
use rustc_hash::FxBuildHasher;
use serde::Serialize;

use super::code_table::CodeTable;
use super::files::code_list_name;
use super::images::Images;
use super::listed_codes::{ListedCodes, ListedNames};
use super::output::Output;
use super::plan::Plan;
use super::recording_index::RecordingIndex;
use super::top::Hits;
use super::{Error, Result};

/// No more images are listed for a code.
const MOST_IMAGES: usize = 64;

/// The first line of a file.
#[derive(Serialize)]
struct Header {
    format: &'static str,
    version: u32,
}

const HEADER: Header = Header { format: "jitscribe codes", version: 1 };

/// A code in a file. Bytes that are no text are replaced.
#[derive(Serialize)]
struct Line<'a> {
    symbol: Cow<'a, str>,
    tier: Cow<'a, str>,
    address: u64,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<u64>,
    samples: u64,
    /// The names of the images that have it, and its address in each.
    images: Vec<(Cow<'a, str>, u64)>,
}

/// The images of each code, by their numbers, and how far addresses in them are behind those in the process.
type ImagesOfCodes = HashMap<(AddressSpaceId, CodeId), Vec<(usize, u64)>, FxBuildHasher>;

/// Writes a file for each process with images into their folder.
///
/// # Errors
/// If one cannot be written, or a dump cannot be read any more.
pub fn write(
    list: &ListedCodes,
    folder: &Path,
    replace: bool,
    (plan, images): (&Plan, &Images),
    index: &RecordingIndex,
    table: &CodeTable<'_>,
    hits: &Hits,
) -> Result<()> {
    let places = images_of(list, plan, images);
    let mut texts: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for arena in &plan.arenas {
        let text = texts.entry(index.processes.pid(arena.space)).or_default();
        if text.is_empty() {
            add_line(text, &HEADER).map_err(Error::file(folder))?;
        }
    }
    let (mut reader, mut others) = (table.reader(), ListedNames::default());
    for listed in list.codes() {
        let Some(text) = texts.get_mut(&index.processes.pid(listed.space)) else { continue };
        let code = table.history.code(listed.code);
        if images.names.get(listed.code).is_none() {
            // No image has it.
            match table.name_without_dump(listed.code) {
                Some(name) => others.add(listed.code, name, None),
                None => match reader.load(code)? {
                    Some(load) => others.add(listed.code, load.name, load.tier()),
                    None => continue,
                },
            }
        }
        let names = [&images.names, &others];
        let name = names.into_iter().find_map(|names| names.get(listed.code));
        let Some((symbol, tier)) = name else { continue };
        let places = places.get(&(listed.space, listed.code)).map(Vec::as_slice);
        let images = places.unwrap_or_default().iter().filter_map(|&(image, moved_by)| {
            let image = images.written.get(image)?;
            let name = image.path.file_name().unwrap_or_default().to_string_lossy();
            // In the file, addresses are offsets.
            let text = &image.finished.text;
            let bias = text.address.wrapping_sub(text.file_offset);
            Some((name, code.address.wrapping_add(moved_by).wrapping_sub(bias)))
        });
        let line = Line {
            symbol: String::from_utf8_lossy(symbol),
            tier: String::from_utf8_lossy(tier),
            address: code.address,
            size: code.size,
            loaded: Some(listed.loaded).filter(|&time| time > 0),
            gone: Some(listed.gone).filter(|&time| time < u64::MAX),
            samples: hits.in_code(listed.code),
            images: images.collect(),
        };
        add_line(text, &line).map_err(Error::file(folder))?;
    }
    for (pid, text) in texts {
        let path = folder.join(code_list_name(pid));
        let mut output = Output::create(&path, replace)?;
        output.file().write_all(&text).map_err(Error::file(&path))?;
        output.finish()?;
    }
    Ok(())
}

/// The images of the listed codes.
fn images_of(list: &ListedCodes, plan: &Plan, images: &Images) -> ImagesOfCodes {
    let mut all = ImagesOfCodes::default();
    let planned = plan.arenas.iter().flat_map(|arena| {
        let space = arena.space;
        arena.images.iter().map(move |image| (space, image))
    });
    for (number, (space, image)) in planned.enumerate().take(images.written.len()) {
        for shown in image.shown.iter().filter(|shown| list.has(shown.code)) {
            let places = all.entry((space, shown.code)).or_default();
            let place = (number, shown.moved_by);
            if places.len() < MOST_IMAGES && !places.contains(&place) {
                places.push(place);
            }
        }
    }
    all
}

/// Adds a line of JSON.
fn add_line(text: &mut Vec<u8>, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}
