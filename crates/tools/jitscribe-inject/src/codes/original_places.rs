//! Where the functions of scripts are defined in the sources that the scripts were compiled from.
//!
//! The symbol of a function has its place in the script, and the lines of its code are those of the source. Without this, the line of one would be shown
//! beside the text of the other.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// No more places are kept. It is as many as compilations are listed.
const MOST: usize = 1 << 16;

/// A place in a file, and the file that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourcePlace(
    /// The file.
    pub String,
    /// The line from 1; 0 if it is not known.
    pub u32,
    /// The column from 1; 0 if it is not known.
    pub u32,
);

/// By line and column in a script.
type ByPlace = FxHashMap<(u32, u32), SourcePlace>;

/// The places of definitions in scripts, and in the sources of the scripts.
#[derive(Clone, Debug, Default)]
pub struct OriginalPlaces {
    by_file: FxHashMap<Box<[u8]>, ByPlace>,
    count: usize,
}

impl OriginalPlaces {
    /// Adds the place of a definition. The first one counts.
    pub fn add(&mut self, file: &[u8], (line, column): (u32, u32), original: SourcePlace) {
        if self.count >= MOST {
            return;
        }
        if !self.by_file.contains_key(file) {
            self.by_file.insert(file.into(), FxHashMap::default());
        }
        if let Some(places) = self.by_file.get_mut(file)
            && !places.contains_key(&(line, column))
        {
            places.insert((line, column), original);
            self.count = self.count.saturating_add(1);
        }
    }

    /// The place in the source of what is defined at a place in a script; `None` if the script is the source.
    #[must_use]
    pub fn of(&self, file: &[u8], place: (u32, u32)) -> Option<&SourcePlace> {
        self.by_file.get(file)?.get(&place)
    }

    /// Adds the rows of a list of codes.
    pub fn extend(&mut self, rows: Vec<(SourcePlace, SourcePlace)>) {
        for (SourcePlace(file, line, column), original) in rows {
            self.add(file.as_bytes(), (line, column), original);
        }
    }

    /// All of them in order, as a list of codes has them: in the script, and in the source.
    #[must_use]
    pub fn rows(&self) -> Vec<(SourcePlace, &SourcePlace)> {
        let mut rows: Vec<_> = self
            .by_file
            .iter()
            .flat_map(|(file, places)| {
                let file = String::from_utf8_lossy(file);
                let row = move |(&(line, column), original)| {
                    (SourcePlace(file.clone().into_owned(), line, column), original)
                };
                places.iter().map(row)
            })
            .collect();
        rows.sort();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let mut places = OriginalPlaces::default();
        let original = |line| SourcePlace("/src/a.ts".to_owned(), line, 10);
        for line in 1..4 {
            places.add(b"/dist/a.js", (1, line), original(line));
        }
        places.add(b"/dist/a.js", (1, 1), original(9));
        let text = serde_json::to_string(&places.rows()).unwrap();
        assert!(text.starts_with(r#"[[["/dist/a.js",1,1],["/src/a.ts",1,10]],"#), "{text}");
        let mut read = OriginalPlaces::default();
        read.extend(serde_json::from_str(&text).unwrap());
        assert_eq!(read.rows(), places.rows());
        assert_eq!(read.of(b"/dist/a.js", (1, 3)), Some(&original(3)));
        assert_eq!(read.of(b"/dist/b.js", (1, 3)), None);
    }

    #[test]
    fn their_number_is_bounded() {
        let mut places = OriginalPlaces::default();
        for line in 0..u32::try_from(MOST).unwrap() + 10 {
            places.add(b"a", (line, 1), SourcePlace::default());
        }
        assert_eq!(places.rows().len(), MOST);
    }
}
