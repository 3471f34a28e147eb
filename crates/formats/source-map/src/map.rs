//! A source map.

use std::borrow::Cow;

use serde::Deserialize;

use crate::Error;
use crate::mappings::{NO_SOURCE, Segment, segments};

/// A source map, ready to be asked.
#[derive(Debug, Default)]
pub struct SourceMap {
    sources: Vec<String>,
    /// By the source's number.
    contents: Vec<Option<String>>,
    /// Sorted by their positions in the generated text.
    segments: Vec<Segment>,
    damage: Option<Error>,
}

/// A position in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original {
    /// The source's number: see [`SourceMap::sources`].
    pub source: usize,
    /// Line from 1.
    pub line: u32,
    /// Column from 1.
    pub column: u32,
}

/// The JSON of a map, as far as it is used.
#[derive(Deserialize)]
struct Json<'a> {
    version: Option<u64>,
    #[serde(rename = "sourceRoot", default)]
    root: Option<String>,
    #[serde(default)]
    sources: Vec<Option<String>>,
    #[serde(rename = "sourcesContent", default)]
    contents: Option<Vec<Option<String>>>,
    #[serde(borrow, default)]
    mappings: Cow<'a, str>,
    #[serde(borrow, default)]
    sections: Option<Vec<Section<'a>>>,
}

/// A part of an index map.
#[derive(Deserialize)]
struct Section<'a> {
    offset: Offset,
    #[serde(borrow)]
    map: Option<Json<'a>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

impl SourceMap {
    /// Reads a map. A first line that begins with `)]}'`, which protects it from being loaded as a script, is skipped.
    ///
    /// # Errors
    /// If it is not the JSON of a source map of version 3. Of invalid mappings, those before the error are kept: see [`Self::damage`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let bytes = match memchr::memchr(b'\n', bytes) {
            Some(end) if bytes.starts_with(b")]}'") => bytes.get(end..).unwrap_or_default(),
            _ => bytes,
        };
        let json: Json<'_> =
            serde_json::from_slice(bytes).map_err(|error| Error::Json(error.to_string()))?;
        if let Some(version) = json.version.filter(|&version| version != 3) {
            return Err(Error::Version(version));
        }
        let mut map = Self::default();
        match json.sections {
            None => map.add(json, (0, 0), (u32::MAX, u32::MAX)),
            Some(sections) => {
                let starts: Vec<(u32, u32)> = sections.iter().map(Section::start).collect();
                let ends = starts.iter().skip(1).copied().chain([(u32::MAX, u32::MAX)]);
                for (section, end) in sections.into_iter().zip(ends) {
                    let start = section.start();
                    // The format has no sections within sections.
                    if let Some(part) = section.map.filter(|part| part.sections.is_none()) {
                        map.add(part, start, end);
                    }
                }
            }
        }
        let place = |segment: &Segment| segment.generated;
        if !map.segments.is_sorted_by_key(place) {
            map.segments.sort_by_key(place);
        }
        Ok(map)
    }

    /// Adds a map whose generated text begins at `start`, up to `end`.
    fn add(&mut self, json: Json<'_>, start: (u32, u32), end: (u32, u32)) {
        let root = json.root.unwrap_or_default();
        let first = u32::try_from(self.sources.len()).unwrap_or(NO_SOURCE);
        let count = u32::try_from(json.sources.len()).unwrap_or(NO_SOURCE);
        self.sources.extend(json.sources.into_iter().map(|source| match source {
            Some(source) if root.is_empty() => source,
            Some(source) => format!("{}/{source}", root.trim_end_matches('/')),
            None => String::new(),
        }));
        let contents = json.contents.unwrap_or_default().into_iter();
        self.contents.extend(contents.chain(std::iter::repeat(None)).take(count as usize));
        let all = &mut self.segments;
        let read = segments(&json.mappings, |mut segment| {
            let (line, column) = segment.generated;
            // Columns are relative to the section's start in its first line only.
            let column = if line == 0 { column.saturating_add(start.1) } else { column };
            segment.generated = (line.saturating_add(start.0), column);
            let has_source = segment.source < count;
            segment.source =
                if has_source { segment.source.saturating_add(first) } else { NO_SOURCE };
            let is_repeated = |last: &Segment| {
                let same_line = last.generated.0 == segment.generated.0;
                same_line && !has_source && last.source == NO_SOURCE
            };
            if segment.generated < end && !all.last().is_some_and(is_repeated) {
                all.push(segment);
            }
        });
        if let Err(error) = read {
            self.damage.get_or_insert(error);
        }
    }

    /// The position from which the text at this line and column was generated. A column of 0 is an unknown one: then the first position of the line
    /// counts. `None` if the map has none.
    #[must_use]
    pub fn original(&self, line: u32, column: u32) -> Option<Original> {
        let line = line.checked_sub(1)?;
        let segment = match column.checked_sub(1) {
            Some(column) => {
                let behind =
                    self.segments.partition_point(|segment| segment.generated <= (line, column));
                self.segments.get(behind.checked_sub(1)?)?
            }
            None => {
                let first = self.segments.partition_point(|segment| segment.generated < (line, 0));
                let rest = self.segments.get(first..)?;
                rest.iter()
                    .take_while(|segment| segment.generated.0 == line)
                    .find(|segment| segment.source != NO_SOURCE)?
            }
        };
        let is_there = segment.generated.0 == line && segment.source != NO_SOURCE;
        is_there.then(|| Original {
            source: segment.source as usize,
            line: segment.line.saturating_add(1),
            column: segment.column.saturating_add(1),
        })
    }

    /// The names of the sources, each with the map's root before it: URLs, relative to that of the map. Empty where the map has no name.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The texts of the sources, by their numbers, as far as the map has them. They are taken out of it.
    #[must_use]
    pub fn take_contents(&mut self) -> Vec<Option<String>> {
        std::mem::take(&mut self.contents)
    }

    /// The first error in the mappings, behind which those of the map, or of a section, were not read.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }
}

impl Section<'_> {
    fn start(&self) -> (u32, u32) {
        (self.offset.line, self.offset.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(map: &SourceMap, line: u32, column: u32) -> Option<(&str, u32, u32)> {
        let place = map.original(line, column)?;
        Some((map.sources()[place.source].as_str(), place.line, place.column))
    }

    #[test]
    fn the_last_segment_of_the_line_that_is_not_behind_the_column_applies() {
        let map = br#"{"version":3,"sourceRoot":"src/","sources":["a.ts",null],"mappings":"IAAA,IACA,IEAA,C;A"}"#;
        let map = SourceMap::parse(map).unwrap();
        assert_eq!(at(&map, 1, 4), None);
        assert_eq!(at(&map, 1, 5), Some(("src/a.ts", 1, 1)));
        assert_eq!(at(&map, 1, 8), Some(("src/a.ts", 1, 1)));
        assert_eq!(at(&map, 1, 9), Some(("src/a.ts", 2, 1)));
        // There is no third source, and then no source at all.
        assert_eq!(at(&map, 1, 13), None);
        assert_eq!(at(&map, 1, 99), None);
        assert_eq!(at(&map, 1, 0), Some(("src/a.ts", 1, 1)));
        assert_eq!((at(&map, 2, 1), at(&map, 3, 1), at(&map, 0, 1)), (None, None, None));
    }

    #[test]
    fn each_source_has_its_own_text() {
        let map = br#"{"version":3,"sections":[
            {"offset":{"line":0,"column":0},"map":{"version":3,"sources":["a","b"],"sourcesContent":["A"],"mappings":""}},
            {"offset":{"line":1,"column":0},"map":{"version":3,"sources":["c"],"sourcesContent":null,"mappings":""}},
            {"offset":{"line":2,"column":0},"map":{"version":3,"sources":["d",null],"sourcesContent":[null,"E","no source"],"mappings":""}},
            {"offset":{"line":3,"column":0},"map":{"version":3,"sources":["f"],"sourcesContent":["F"],"mappings":""}}]}"#;
        let mut map = SourceMap::parse(map).unwrap();
        let contents = map.take_contents();
        let contents: Vec<_> = contents.iter().map(|text| text.as_deref().unwrap_or("-")).collect();
        assert_eq!(map.sources(), ["a", "b", "c", "d", "", "f"]);
        assert_eq!(contents, ["A", "-", "-", "-", "E", "F"]);
    }

    #[test]
    fn sections_are_moved_and_end_where_the_next_begins() {
        let map = br#")]}' no script
            {"version":3,"sections":[
              {"offset":{"line":0,"column":0},"map":{"version":3,"sources":["a"],"mappings":"AAAA;AACA;AACA"}},
              {"offset":{"line":1,"column":10},"map":{"version":3,"sources":["b"],"mappings":"EAAA;EACA"}},
              {"offset":{"line":9,"column":0},"map":{"version":3,"sections":[]}}]}"#;
        let map = SourceMap::parse(map).unwrap();
        assert_eq!(at(&map, 1, 1), Some(("a", 1, 1)));
        assert_eq!(at(&map, 2, 12), Some(("a", 2, 1)));
        assert_eq!(at(&map, 2, 13), Some(("b", 1, 1)));
        assert_eq!(at(&map, 3, 1), None);
        assert_eq!(at(&map, 3, 3), Some(("b", 2, 1)));
    }

    #[test]
    fn what_is_no_map_is_refused_and_damage_reported() {
        assert!(matches!(SourceMap::parse(b"{"), Err(Error::Json(_))));
        assert_eq!(SourceMap::parse(br#"{"version":2}"#).err(), Some(Error::Version(2)));
        let map = br#"{"version":3,"sources":["a"],"mappings":"AAAA;!"}"#;
        let map = SourceMap::parse(map).unwrap();
        assert_eq!(map.damage(), Some(&Error::Character { offset: 5 }));
        assert_eq!(at(&map, 1, 1), Some(("a", 1, 1)));
    }
}
