//! The descriptions of codes that were asked for.

use std::collections::HashMap;
use std::rc::Rc;

use crate::body::Body;

/// Which code: the number of its source, its place there, and when it was loaded.
pub(crate) type BodyKey = (u64, u64, u64);

/// Keeps what was used of late, within a number of bytes: what was used neither in this period nor in the one before is dropped.
#[derive(Debug)]
pub(crate) struct Bodies {
    most: usize,
    new: HashMap<BodyKey, Rc<Body>>,
    old: HashMap<BodyKey, Rc<Body>>,
    cost: usize,
}

impl Bodies {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, new: HashMap::new(), old: HashMap::new(), cost: 0 }
    }

    pub(crate) fn get(&mut self, key: BodyKey) -> Option<Rc<Body>> {
        if let Some(body) = self.new.get(&key) {
            return Some(Rc::clone(body));
        }
        let body = self.old.remove(&key)?;
        self.put(key, Rc::clone(&body));
        Some(body)
    }

    pub(crate) fn put(&mut self, key: BodyKey, body: Rc<Body>) {
        self.cost = self.cost.saturating_add(body.cost);
        self.new.insert(key, body);
        // Both periods together have at most this much, and one code more.
        if self.cost > self.most / 2 {
            self.old = std::mem::take(&mut self.new);
            self.cost = 0;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}
