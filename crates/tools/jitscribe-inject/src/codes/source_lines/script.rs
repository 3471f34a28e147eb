//! The source map of a script.

use std::sync::atomic::{AtomicBool, Ordering};

use source_map::SourceMap;

use super::name::{joined, source_name};

/// A source map, and the paths of its sources.
#[derive(Debug)]
pub struct MappedScript {
    map: SourceMap,
    /// Empty where the map has no name.
    sources: Vec<Box<[u8]>>,
    /// The texts of the sources that the map has and that may be kept.
    contents: Vec<Option<String>>,
    /// Which sources were sampled.
    sampled: Vec<AtomicBool>,
}

impl MappedScript {
    /// Names of sources are relative to `folder`, that of the map. `find` may replace a path.
    pub fn new(map: SourceMap, folder: &[u8], mut find: impl FnMut(Vec<u8>) -> Vec<u8>) -> Self {
        let source = |name: &String| {
            if name.is_empty() {
                return Box::default();
            }
            let path = source_name(name.as_bytes());
            // A URL with a scheme is absolute.
            let folder = if name.contains("://") { b"" } else { folder };
            find(joined(folder, &path)).into_boxed_slice()
        };
        let sources: Vec<Box<[u8]>> = map.sources().iter().map(source).collect();
        let sampled = sources.iter().map(|_| AtomicBool::new(false)).collect();
        Self { map, sources, contents: Vec::new(), sampled }
    }

    /// The same with texts of the sources, by the sources' numbers.
    pub fn with_contents(self, contents: Vec<Option<String>>) -> Self {
        Self { contents, ..self }
    }

    /// The sources that were sampled, with their texts as far as these may be kept.
    pub fn sampled(&self) -> impl Iterator<Item = (&[u8], Option<&str>)> {
        let sources = self.sources.iter().enumerate().filter(|(number, source)| {
            let sampled = self.sampled.get(*number);
            !source.is_empty() && sampled.is_some_and(|sampled| sampled.load(Ordering::Relaxed))
        });
        sources.map(|(number, source)| {
            (&**source, self.contents.get(number).and_then(Option::as_deref))
        })
    }

    /// Whether the file at `path` is one of the sources.
    pub fn has_source(&self, path: &[u8]) -> bool {
        !path.is_empty() && self.sources.iter().any(|source| **source == *path)
    }

    /// The file, line and column from which a position of the script was generated.
    pub fn original(&self, line: u32, column: u32) -> Option<(&[u8], u32, u32)> {
        self.found(line, column, false)
    }

    /// The same for a position in code that was sampled.
    pub fn sampled_original(&self, line: u32, column: u32) -> Option<(&[u8], u32, u32)> {
        self.found(line, column, true)
    }

    fn found(&self, line: u32, column: u32, is_sampled: bool) -> Option<(&[u8], u32, u32)> {
        let place = self.map.original(line, column)?;
        let source = self.sources.get(place.source).filter(|source| !source.is_empty())?;
        if let Some(sampled) = self.sampled.get(place.source).filter(|_| is_sampled) {
            sampled.store(true, Ordering::Relaxed);
        }
        Some((source, place.line, place.column))
    }
}

/// Whether a file may be JavaScript: its name ends like that of a script, or has no extension.
pub fn may_be_script(path: &[u8]) -> bool {
    const EXTENSIONS: [&[u8]; 8] = [b"js", b"mjs", b"cjs", b"jsx", b"ts", b"mts", b"cts", b"tsx"];
    let name = crate::files::base_name(path);
    match name.iter().rposition(|&byte| byte == b'.') {
        None => true,
        Some(dot) => {
            let extension = name.get(dot.saturating_add(1)..).unwrap_or_default();
            EXTENSIONS.contains(&extension)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_paths() {
        let map =
            br#"{"version":3,"sources":["../src/a.ts","webpack://app/./b.ts","file:///c.ts",null],
            "mappings":"AAAA,ICAA,IGCA,IACA"}"#;
        let map = SourceMap::parse(map).unwrap();
        let script = MappedScript::new(map, b"/app/dist", |path| path);
        assert_eq!(script.original(1, 1), Some((&b"/app/src/a.ts"[..], 1, 1)));
        assert_eq!(script.original(1, 5), Some((&b"webpack/app/b.ts"[..], 1, 1)));
        assert_eq!(script.original(1, 9), None);
        assert_eq!(script.sources[2].as_ref(), b"/c.ts");
    }

    #[test]
    fn scripts_are_known_by_their_names() {
        for name in ["/a/b.js", "/a/b.min.mjs", "/usr/bin/tsc", "/a.b/c"] {
            assert!(may_be_script(name.as_bytes()), "{name}");
        }
        for name in ["java/util/HashMap.java", "lists.erl", "/a/b.py"] {
            assert!(!may_be_script(name.as_bytes()), "{name}");
        }
    }
}
