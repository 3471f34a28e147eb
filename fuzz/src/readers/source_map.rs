//! Source maps and the comments that name them: any bytes.

use source_map::{MapUrl, SourceMap};

/// Reads the bytes as a map and as a script, and asks for positions.
pub fn run(bytes: &[u8]) {
    read(bytes);
    match MapUrl::of_script(bytes) {
        Some(MapUrl::Inline(map)) => read(&map),
        Some(MapUrl::At(url)) => assert!(!url.is_empty()),
        None => {}
    }
}

fn read(bytes: &[u8]) {
    let Ok(map) = SourceMap::parse(bytes) else { return };
    for line in (0..64).chain([u32::MAX]) {
        for column in (0..64).chain([u32::MAX]) {
            if let Some(place) = map.original(line, column) {
                assert!(place.source < map.sources().len() && place.line > 0 && place.column > 0);
            }
        }
    }
}
