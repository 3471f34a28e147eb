//! A map by address.

use fallible::Vec;

/// A list ordered by address, without duplicates. Usually new elements have the highest address: for these it takes a
/// tenth of the instructions of a tree.
#[derive(Debug)]
pub(crate) struct Sorted<T>(Vec<(u64, T)>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Sorted<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All elements, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(u64, T)> {
        self.0.iter()
    }

    /// The element with the highest address.
    pub(crate) fn last(&self) -> Option<&(u64, T)> {
        self.0.last()
    }

    /// Number of elements below an address.
    fn below(&self, address: u64) -> usize {
        match self.0.last() {
            Some(last) if last.0 >= address => self.0.partition_point(|each| each.0 < address),
            _ => self.0.len(),
        }
    }

    /// The last element below an address.
    pub(crate) fn last_below(&self, address: u64) -> Option<&(u64, T)> {
        self.0.get(..self.below(address)).and_then(<[_]>::last)
    }

    /// The index of the element at this address, or where it would be inserted.
    fn find(&self, address: u64) -> (usize, bool) {
        let at = self.below(address);
        (at, self.0.get(at).is_some_and(|each| each.0 == address))
    }

    pub(crate) fn get(&self, address: u64) -> Option<&T> {
        let (at, is_there) = self.find(address);
        self.0.get(at).filter(|_| is_there).map(|each| &each.1)
    }

    pub(crate) fn get_mut(&mut self, address: u64) -> Option<&mut T> {
        let (at, is_there) = self.find(address);
        self.0.get_mut(at).filter(|_| is_there).map(|each| &mut each.1)
    }

    /// The elements from `start` to below `end`.
    pub(crate) fn range_mut(&mut self, start: u64, end: u64) -> &mut [(u64, T)] {
        let range = self.below(start)..self.below(end);
        self.0.get_mut(range).unwrap_or_default()
    }

    /// Inserts an element, or replaces the one at its address.
    pub(crate) fn insert(&mut self, address: u64, new: T) {
        match self.find(address) {
            (at, true) => self.0[at].1 = new,
            (at, false) => self.0.insert(at, (address, new)),
        }
    }

    pub(crate) fn remove(&mut self, address: u64) -> Option<T> {
        let (at, is_there) = self.find(address);
        is_there.then(|| self.0.remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use super::Sorted;

    #[test]
    fn is_a_map() {
        let mut sorted = Sorted::default();
        for address in [30, 10, 20, 40, 20] {
            sorted.insert(address, address + 1);
        }
        assert_eq!(sorted.iter().map(|each| each.0).collect::<Vec<_>>(), [10, 20, 30, 40]);
        assert_eq!([sorted.get(20), sorted.get(21), sorted.get(50)], [Some(&21), None, None]);
        assert_eq!(sorted.last_below(20), Some(&(10, 11)));
        assert_eq!([sorted.last_below(10), sorted.last_below(99)], [None, Some(&(40, 41))]);
        assert_eq!(sorted.range_mut(20, 40), [(20, 21), (30, 31)]);
        assert_eq!(sorted.range_mut(50, 40), []);
        assert_eq!([sorted.remove(20), sorted.remove(20)], [Some(21), None]);
        assert_eq!([sorted.len() as u64, sorted.last().unwrap().0], [3, 40]);
        *sorted.get_mut(40).unwrap() = 0;
        assert_eq!(sorted.get(40), Some(&0));
    }
}
