//! A buffer that is filled at the end and consumed at the front.

use crate::error::Error;

/// Bytes that were read but not consumed yet, with a fixed capacity.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], start: 0, end: 0 }
    }

    pub(crate) fn unused(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Removes bytes at the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
    }

    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Moves the rest to the front and lets `fill` write behind it. `fill` returns how much it wrote.
    pub(crate) fn refill(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
    ) -> Result<usize, Error> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.len());
        let written = fill(self.bytes.get_mut(self.end..).unwrap_or_default())?;
        self.end = self.end.saturating_add(written).min(self.bytes.len());
        Ok(written)
    }
}
