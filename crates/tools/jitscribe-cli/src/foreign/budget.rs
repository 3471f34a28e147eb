//! Limits on the total number of bytes that are held at a time.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on the bytes that may be held at a time, and the number of bytes held now.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    held: AtomicU64,
}

impl Budget {
    /// A budget of `most` bytes.
    pub const fn new(most: u64) -> Self {
        Self { most, held: AtomicU64::new(0) }
    }

    /// The number of bytes that are still available.
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.held.load(Ordering::Relaxed))
    }
}

/// A reserved part of a budget. Dropping this returns it to the budget.
#[derive(Debug)]
pub struct Reservation {
    of: &'static Budget,
    bytes: u64,
}

impl Reservation {
    /// An empty reservation.
    pub const fn of(budget: &'static Budget) -> Self {
        Self { of: budget, bytes: 0 }
    }

    /// Reserves more bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] if fewer bytes are left; nothing is reserved then.
    pub fn add(&mut self, bytes: u64) -> io::Result<()> {
        let sum = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.of.most);
        let added = self.of.held.try_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        added.map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_there_is_and_all_is_given_back() {
        static BUDGET: Budget = Budget::new(100);
        let (mut one, mut other) = (Reservation::of(&BUDGET), Reservation::of(&BUDGET));
        one.add(60).expect("room");
        other.add(40).expect("room");
        assert_eq!(BUDGET.left(), 0);
        for too_much in [1, u64::MAX] {
            let error = other.add(too_much).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
        drop(one);
        assert_eq!(BUDGET.left(), 60);
        assert!(other.add(61).is_err());
        other.add(60).expect("what was given back");
        drop(other);
        assert_eq!(BUDGET.left(), 100);
    }
}
