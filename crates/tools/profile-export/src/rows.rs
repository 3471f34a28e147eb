//! Rows of tables, equal ones once.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Rows in the order in which they were added, and their numbers from 0.
#[derive(Debug)]
pub struct Rows<T> {
    rows: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Rows<T> {
    /// The number of a row, which is added if it is not there.
    pub fn number(&mut self, row: T) -> u32 {
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if let Some(number) = self.numbers.get(&row) {
            return *number;
        }
        self.numbers.insert(row.clone(), next);
        self.rows.push(row);
        next
    }

    /// The rows, in the order of their numbers.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// The rows without their numbers.
    pub fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

/// The number of a row in tables whose first row is 1: 0 is none.
pub fn from_one(number: u32) -> u64 {
    u64::from(number).saturating_add(1)
}
