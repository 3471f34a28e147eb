//! How the functions of a profile are named.
//!
//! Readers of profiles take functions of one name, file and object for one. The names of codes have the function, the place where
//! it begins, and marks of the compiler. The place is the file and line of the function in the profile; only where a file has
//! several functions of one name, it stays in the name.

use std::collections::{HashMap, HashSet};

use code_index::FunctionName;
use jitscribe_inject::source_name;

use crate::Result;
use crate::symbols::SymbolIndex;

/// How each function is named.
#[derive(Debug, Default)]
pub struct FunctionNames {
    /// Those that begin at several places, or have several sources.
    ambiguous: HashSet<NameAndFile>,
}

/// A function's name and its file.
type NameAndFile = (Box<[u8]>, Box<[u8]>);

impl FunctionNames {
    /// The functions of all known code.
    ///
    /// # Errors
    /// If a dump cannot be read.
    pub fn of(known: &mut SymbolIndex) -> Result<Self> {
        let mut places: HashMap<NameAndFile, (u32, u32, Vec<u8>)> = HashMap::new();
        let mut ambiguous = HashSet::new();
        let all: Vec<_> = known.iter().collect();
        for code in all {
            let name = known.name(&code)?;
            let name = FunctionName::of(&name);
            if !name.has_place() && name.source_hash.is_empty() {
                continue;
            }
            let place = (name.line, name.column, name.source_hash.to_vec());
            let key: NameAndFile = (name.function.into(), name.file.into());
            if *places.entry(key.clone()).or_insert_with(|| place.clone()) != place {
                ambiguous.insert(key);
            }
        }
        Ok(Self { ambiguous })
    }

    /// The name of the function that a code with this name belongs to, and the file in it, if there is one.
    pub fn of_code(&self, code: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
        let name = FunctionName::of(code);
        let has_place = name.has_place();
        let FunctionName { function, file, line, column, source_hash, .. } = name;
        let mut shown = function.to_vec();
        // What has no name has only its place.
        let is_anonymous = *function == *FunctionName::ANONYMOUS;
        let path = (!file.is_empty()).then(|| source_name(file).into_owned());
        let key = (function.into(), file.into());
        if has_place && (is_anonymous || self.ambiguous.contains(&key)) {
            shown.extend_from_slice(format!(":{line}").as_bytes());
            if column > 0 {
                shown.extend_from_slice(format!(":{column}").as_bytes());
            }
        }
        if !source_hash.is_empty() && self.ambiguous.contains(&key) {
            shown.extend_from_slice(&[b"#", source_hash].concat());
        }
        (shown, path)
    }
}
