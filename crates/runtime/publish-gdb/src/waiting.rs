//! Codes that are not shown yet, in the order in which they were loaded.

use code_image::Symfile;
use fallible::{Vec, VecDeque};

/// Files of one code each. Each has a number, in ascending order, by which it can be taken out.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// `None` if it was taken out. The first one is there.
    files: VecDeque<Option<Symfile>>,
    /// The number of the first one.
    first: u64,
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Adds a file, and returns its number.
    pub(crate) fn push(&mut self, file: Symfile) -> u64 {
        let number = self.first.saturating_add(self.files.len() as u64);
        self.files.push_back(Some(file));
        number
    }

    /// Takes the file of this number out, if it is that of the code with this key.
    pub(crate) fn take(&mut self, number: u64, key: u64) -> Option<Symfile> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let is_it = |file: &mut Symfile| file.codes().next().is_some_and(|code| code.key == key);
        let taken = self.files.get_mut(at)?.take_if(is_it);
        self.drop_taken();
        taken
    }

    /// Takes up to `count` files, in order.
    pub(crate) fn take_first(&mut self, count: usize) -> Vec<Symfile> {
        let mut taken = Vec::with_capacity(count.min(self.files.len()));
        while taken.len() < count
            && let Some(file) = self.pop()
        {
            taken.extend(file);
        }
        self.drop_taken();
        taken
    }

    /// Removes from the front what was taken out.
    fn drop_taken(&mut self) {
        while self.files.front().is_some_and(Option::is_none) {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Option<Symfile>> {
        let file = self.files.pop_front()?;
        self.first = self.first.saturating_add(1);
        Some(file)
    }
}
