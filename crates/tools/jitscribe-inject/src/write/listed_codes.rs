//! The codes that are listed beside the images ([`code_list`](super::code_list)), and their names.

use std::collections::HashMap;

use code_timeline::{AddressSpaceId, CodeId};
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::attribution::hits::Hits;
use crate::codes::code_numbers::CodeNumbers;
use crate::codes::code_table::{CodeTable, Origin};
use crate::codes::function_hash::function_hash;

/// No more codes are listed for a recording.
const MOST: usize = 1 << 16;
/// Longer symbols are cut off.
const LONGEST_SYMBOL: usize = 1 << 12;

/// When codes were there.
#[derive(Debug, Default)]
pub struct ListedCodes {
    codes: Vec<ListedCode>,
    /// The place of each code's name in [`ListedNames`], by code. Images have all code, of which few is listed.
    names: CodeNumbers,
}

/// A code of the list.
#[derive(Debug)]
pub struct ListedCode {
    /// Where it is.
    pub space: AddressSpaceId,
    /// The code.
    pub code: CodeId,
    /// When it was loaded.
    pub loaded: u64,
    /// When it was gone.
    pub gone: u64,
}

impl ListedCodes {
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
        // A code that a child inherits is listed twice, and has one name.
        let mut names = CodeNumbers::new(table.history.len());
        let mut next = 0;
        for listed in &codes {
            if names.get(listed.code).is_none() {
                names.set(listed.code, next);
                next += 1;
            }
        }
        Self { codes, names }
    }

    /// Whether a code is in the list.
    pub fn has(&self, code: CodeId) -> bool {
        self.names.get(code).is_some()
    }

    /// The codes, in the order in which their processes and dumps were read.
    pub fn codes(&self) -> &[ListedCode] {
        &self.codes
    }
}

/// The symbols and tiers of listed codes, from what was read for the images.
#[derive(Debug, Default)]
pub struct ListedNames {
    text: Vec<u8>,
    /// By the codes' places.
    places: Vec<Option<NamePlace>>,
}

/// Where a symbol is in a text, and the tier behind it.
#[derive(Clone, Copy, Debug)]
struct NamePlace {
    start: usize,
    symbol: usize,
    tier: usize,
}

impl ListedNames {
    /// Adds a code, if it is in the list. A second time has no effect.
    pub fn add(&mut self, list: &ListedCodes, code: CodeId, name: &[u8], tier: Option<&[u8]>) {
        let Self { text, places } = self;
        let Some(number) = list.names.get(code) else { return };
        if places.len() <= number {
            places.resize(number + 1, None);
        }
        let Some(place @ None) = places.get_mut(number) else { return };
        let start = text.len();
        let symbol = code_image::symbol_name(name);
        let symbol = symbol.get(..LONGEST_SYMBOL).unwrap_or(&symbol);
        let tier = tier.unwrap_or_default();
        text.extend_from_slice(symbol);
        text.extend_from_slice(tier);
        *place = Some(NamePlace { start, symbol: symbol.len(), tier: tier.len() });
    }

    /// The symbol and the tier of a code.
    pub fn get(&self, list: &ListedCodes, code: CodeId) -> Option<(&[u8], &[u8])> {
        let &NamePlace { start, symbol, tier } =
            self.places.get(list.names.get(code)?)?.as_ref()?;
        self.text.get(start..start + symbol + tier)?.split_at_checked(symbol)
    }
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
