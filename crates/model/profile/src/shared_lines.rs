//! Functions that begin on one line.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Which functions need their column to be told apart: scripts that were minified have functions of one name on one line.
///
/// `Text` is how names and files are given: as bytes, or by their number in a profile.
#[derive(Clone, Debug)]
pub struct SharedLines<Text> {
    /// By name, file and line: the only column that functions begin at, or `None` if there are several.
    columns: FxHashMap<(Text, Text, u32), Option<u32>>,
}

impl<Text: Eq + Hash> SharedLines<Text> {
    /// Of functions with their name, file, line and column. Those whose line or column is 0, and so not known, share none.
    pub fn of(functions: impl IntoIterator<Item = (Text, Text, u32, u32)>) -> Self {
        let mut columns: FxHashMap<(Text, Text, u32), Option<u32>> = FxHashMap::default();
        for (name, file, line, column) in functions {
            if line > 0 && column > 0 {
                let only = columns.entry((name, file, line)).or_insert(Some(column));
                *only = only.filter(|only| *only == column);
            }
        }
        Self { columns }
    }

    /// Whether functions of this name begin at several columns of the line.
    pub fn is_shared(&self, name: Text, file: Text, line: u32) -> bool {
        self.columns.get(&(name, file, line)) == Some(&None)
    }
}

/// A name with its place, for views that show names alone: `f a.js:1:2045`. Of the file, there is the name without its folder; numbers that are 0 are not
/// known, and left out.
#[must_use]
pub fn name_with_place(name: &[u8], file: &[u8], (line, column): (u32, u32)) -> Vec<u8> {
    let file = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
    let mut placed = [name, b" ", file].concat();
    for number in [line, column].into_iter().take_while(|&number| number > 0) {
        placed.extend_from_slice(format!(":{number}").as_bytes());
    }
    placed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against each pair of functions.
        #[test]
        fn a_line_is_shared_if_another_function_differs_in_its_column_alone(
            rows in prop::collection::vec((0..2_u8, 0..2_u8, 0..3_u32, 0..3_u32), 0..12)
        ) {
            let shared = SharedLines::of(rows.clone());
            for &(name, file, line, column) in rows.iter().filter(|row| row.3 > 0) {
                let is_other = |row: &&(u8, u8, u32, u32)| {
                    (row.0, row.1, row.2) == (name, file, line) && row.3 > 0 && row.3 != column
                };
                let expected = line > 0 && rows.iter().any(|row| is_other(&row));
                prop_assert_eq!(shared.is_shared(name, file, line), expected);
            }
        }
    }

    #[test]
    fn names_with_places() {
        assert_eq!(name_with_place(b"f", b"/x/a.js", (1, 2045)), b"f a.js:1:2045");
        assert_eq!(name_with_place(b"f", b"a.js", (3, 0)), b"f a.js:3");
        assert_eq!(name_with_place(b"f", b"", (0, 4)), b"f ");
    }
}
