//! The strings of a profile, each once.

use crate::id::StringId;
use crate::table::Table;

/// Names and paths: any bytes, as their writers chose them.
#[derive(Clone, Debug)]
pub struct Strings {
    table: Table<Box<[u8]>, StringId>,
}

impl Default for Strings {
    fn default() -> Self {
        let mut table = Table::default();
        table.add(Box::default());
        Self { table }
    }
}

impl Strings {
    /// Its bytes; empty for a number that is not of this profile.
    #[must_use]
    pub fn get(&self, id: StringId) -> &[u8] {
        self.table.rows().get(id.index()).map(AsRef::as_ref).unwrap_or_default()
    }

    /// All strings, the empty one first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.table.rows().iter().map(AsRef::as_ref)
    }

    /// The number of `text`, if it is in the profile.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<StringId> {
        self.table.find(text)
    }

    pub(crate) fn intern(&mut self, text: &[u8]) -> StringId {
        self.find(text).unwrap_or_else(|| self.table.add(text.into()))
    }
}
