//! Names of functions without their place, for tools that show the place beside the name.
#![forbid(unsafe_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use code_index::FunctionName;
use fallible::{Map, Vec};

/// So many functions are told apart. The names of others stay whole.
const MOST: usize = 1 << 20;

/// Where functions begin. A file may have several of one name: profiles that tell functions apart by name and file alone must not merge them.
#[derive(Debug, Default)]
pub(crate) struct FunctionNames {
    /// Line and column of the first function that was announced with a name and a file, by the hash of both. Two that have the same hash by chance have
    /// their lines in their names.
    begins: Map<u64, (u32, u32)>,
    spelled: Vec<u8>,
}

impl FunctionNames {
    /// The function of a code, for tools that show its file and its line: `collatz` of `collatz(p.raku:1)`, and `find:9` if there was another function
    /// `find` in its file. Empty if the name is to stay whole: it has no place, or the tier of a compiler.
    pub(crate) fn of<'a>(&'a mut self, code: &'a [u8]) -> &'a [u8] {
        let name = FunctionName::placed_of(code).filter(|name| name.tier.is_none());
        let Some(FunctionName { function, file, line, column, .. }) = name else { return b"" };
        let mut hasher = DefaultHasher::new();
        (&*function, file).hash(&mut hasher);
        let key = hasher.finish();
        let first = self.begins.get(&key).copied();
        let is_full = self.begins.len() >= MOST;
        if first.is_none() && (is_full || self.begins.try_insert(key, (line, column)).is_err()) {
            return b"";
        }
        self.spelled.clear();
        self.spelled.extend_from_slice(&function);
        let is_anonymous = *function == *FunctionName::ANONYMOUS;
        if is_anonymous || first.is_some_and(|first| first != (line, column)) {
            for number in [line, column].into_iter().take_while(|&number| number > 0) {
                if write!(self.spelled, ":{number}").is_err() {
                    return b"";
                }
            }
        }
        &self.spelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_name_and_file_are_told_apart() {
        let mut names = FunctionNames::default();
        for (code, function) in [
            ("collatz(p.raku:1)", "collatz"),
            ("find(src/q.nqp:9)", "find"),
            ("find(src/q.nqp:3)", "find:3"),
            // Compiled again.
            ("find(src/q.nqp:9)", "find"),
            ("find(src/r.nqp:3)", "find"),
            ("(src/q.nqp:5)", "(anonymous):5"),
            ("py::C.g:/a/y.py", "C.g"),
            // A tier tells compilations apart, and a name without a place has nothing to lose.
            ("JS:*f file:///a/x.js:2:3", ""),
            ("plain(int)", ""),
            ("", ""),
        ] {
            assert_eq!(names.of(code.as_bytes()), function.as_bytes(), "{code}");
        }
    }
}
