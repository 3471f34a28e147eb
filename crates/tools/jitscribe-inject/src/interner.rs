//! Stores each name once.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameId(u32);

impl NameId {
    /// The index of this name in a table by name.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
impl NameId {
    /// For tests, without a name.
    pub fn made(number: u32) -> Self {
        Self(number)
    }
}

/// Numbers names in the order of their first appearance.
#[derive(Debug, Default)]
pub struct Interner {
    names: Vec<Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, NameId>,
}

impl Interner {
    /// The number of `name`; a new one if it is unknown.
    pub fn intern(&mut self, name: &[u8]) -> NameId {
        if let Some(&id) = self.numbers.get(name) {
            return id;
        }
        let id = NameId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let name: Arc<[u8]> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, id);
        id
    }

    /// The name with this number.
    pub fn get(&self, id: NameId) -> &[u8] {
        &self.names[id.index()]
    }

    /// All names in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }
}
