//! Rows, equal ones once.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use rustc_hash::FxBuildHasher;

use crate::id::Id;

/// Rows in the order in which they were added, and their numbers.
#[derive(Clone)]
pub struct Table<Row, Number> {
    rows: Vec<Row>,
    numbers: HashMap<Row, Number, FxBuildHasher>,
}

impl<Row, Number> Default for Table<Row, Number> {
    fn default() -> Self {
        Self { rows: Vec::new(), numbers: HashMap::default() }
    }
}

impl<Row: fmt::Debug, Number> fmt::Debug for Table<Row, Number> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

impl<Row: Clone + Eq + Hash, Number: Id> Table<Row, Number> {
    /// The number of the row, which is added if it is not there.
    pub fn add(&mut self, row: Row) -> Number {
        let next = Number::at(self.rows.len());
        let number = *self.numbers.entry(row.clone()).or_insert(next);
        if number.index() == self.rows.len() {
            self.rows.push(row);
        }
        number
    }

    /// The number of a row.
    pub fn find<Key: Eq + Hash + ?Sized>(&self, key: &Key) -> Option<Number>
    where
        Row: Borrow<Key>,
    {
        self.numbers.get(key).copied()
    }

    /// The rows, in the order of their numbers.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows without their numbers.
    pub fn into_rows(self) -> Vec<Row> {
        self.rows
    }
}
