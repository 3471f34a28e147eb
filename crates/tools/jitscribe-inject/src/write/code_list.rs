//! The list of codes that is written beside the images: when each compilation of a sampled function was loaded and gone.
//!
//! Images show code at addresses, without times, and without code that another one hides. A profile wants both: see "The list of codes" in
//! `docs/apply.md`, which has the format. Most code of a process belongs to functions that were never sampled, and is left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use code_timeline::{AddressSpaceId, CodeId};
use serde::Serialize;

use super::images::Images;
use super::listed_codes::{ListedCodes, ListedNames};
use super::output::{Folder, Output};
use crate::attribution::hits::Hits;
use crate::codes::code_table::CodeTable;
use crate::codes::original_places::SourcePlace;
use crate::files::code_list_name;
use crate::plan::{ImageCode, Plan};
use crate::recording::recording_index::RecordingIndex;
use crate::{Error, Result};

/// No more images are listed for a code.
const MOST_IMAGES: usize = 64;

/// The first line of a file.
#[derive(Serialize)]
struct Header<'a> {
    format: &'static str,
    version: u32,
    /// Where functions of scripts are defined in the sources that the scripts were compiled from.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    originals: &'a [(SourcePlace, &'a SourcePlace)],
    /// The user of the process, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
}

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

/// A listed code in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InImage {
    space: AddressSpaceId,
    code: CodeId,
    /// The image's number.
    image: usize,
    /// How far its addresses are behind those in the process.
    moved_by: u64,
}

/// Writes a file for each process with images into their folder.
///
/// # Errors
/// If one cannot be written, or a dump cannot be read any more.
pub fn write(
    list: &ListedCodes,
    mut names: ListedNames,
    (folder, replace): (Option<&Arc<Folder>>, bool),
    (plan, images): (&Plan, &Images),
    (index, user_of): (&RecordingIndex, &dyn Fn(u32) -> Option<u32>),
    table: &CodeTable<'_>,
    hits: &Hits,
) -> Result<()> {
    // No images, no list.
    let Some(folder) = folder else { return Ok(()) };
    let originals = images.originals.rows();
    let mut texts: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for arena in &plan.arenas {
        let pid = index.processes.pid(arena.space);
        let text = texts.entry(pid).or_default();
        if text.is_empty() {
            let (format, version, originals) = ("jitscribe codes", 1, &*originals);
            let header = Header { format, version, originals, user: user_of(pid) };
            add_line(text, &header).map_err(Error::file(folder.path()))?;
        }
    }
    let file_name =
        |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let files: Vec<_> = images.written.iter().map(|image| file_name(&image.path)).collect();
    let in_images = in_images(list, plan, images, table);
    let mut in_images = &in_images[..];
    let mut reader = table.reader();
    for listed in list.codes() {
        let key = (listed.space, listed.code);
        let of_code = in_images.partition_point(|it| (it.space, it.code) <= key);
        let (places, rest) = in_images.split_at(of_code);
        in_images = rest;
        let Some(text) = texts.get_mut(&index.processes.pid(listed.space)) else { continue };
        let code = table.history.code(listed.code);
        if names.get(list, listed.code).is_none() {
            // No image has it.
            match table.name_without_dump(listed.code) {
                Some(name) => names.add(list, listed.code, name, None),
                None => match reader.load(code)? {
                    Some(load) => names.add(list, listed.code, load.name, load.tier()),
                    None => continue,
                },
            }
        }
        let Some((symbol, tier)) = names.get(list, listed.code) else { continue };
        let places = places.iter().filter(|place| (place.space, place.code) == key);
        let images = places.take(MOST_IMAGES).filter_map(|place| {
            let image = images.written.get(place.image)?;
            let name = Cow::Borrowed(&**files.get(place.image)?);
            // In the file, addresses are offsets.
            let text = &image.finished.text;
            let bias = text.address.wrapping_sub(text.file_offset);
            Some((name, code.address.wrapping_add(place.moved_by).wrapping_sub(bias)))
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
        add_line(text, &line).map_err(Error::file(folder.path()))?;
    }
    for (pid, text) in texts {
        let mut output = Output::create_in(folder, code_list_name(pid).as_ref(), replace)?;
        let written = output.file().write_all(&text);
        written.map_err(Error::file(output.path()))?;
        output.finish()?;
    }
    Ok(())
}

/// The listed codes in images, in the order of the list. Where an image has other code at the beginning of a code, the address is that other code's.
fn in_images(
    list: &ListedCodes,
    plan: &Plan,
    images: &Images,
    table: &CodeTable<'_>,
) -> Vec<InImage> {
    let begins = |shown: &ImageCode| {
        let address = table.history.code(shown.code).address;
        shown.visible.start == address.wrapping_add(shown.moved_by)
    };
    let planned = plan.arenas.iter().flat_map(|arena| {
        let space = arena.space;
        arena.images.iter().map(move |image| (space, image))
    });
    let planned = planned.enumerate().take(images.written.len());
    let mut all: Vec<InImage> = planned
        .flat_map(|(number, (space, image))| {
            let listed = image.shown.iter().filter(|shown| list.has(shown.code));
            listed.filter(|shown| begins(shown)).map(move |shown| InImage {
                space,
                code: shown.code,
                image: number,
                moved_by: shown.moved_by,
            })
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Adds a line of JSON.
fn add_line(text: &mut Vec<u8>, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}
