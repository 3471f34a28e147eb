//! Profiles in memory that wait to be sent: without a spool, or while it cannot be written.

use std::collections::VecDeque;

use crate::profile_body::ProfileBody;

/// A queue with a limit.
#[derive(Debug)]
pub(crate) struct Memory {
    waiting: VecDeque<(u64, ProfileBody)>,
    last: u64,
    bytes: u64,
    limit: u64,
}

fn size(body: &ProfileBody) -> u64 {
    body.gzipped().len() as u64
}

impl Memory {
    pub fn new(limit: u64) -> Self {
        Self { waiting: VecDeque::new(), last: 0, bytes: 0, limit }
    }

    /// Adds a profile, and returns how many older ones were dropped for it; `None` if it does not fit at all.
    pub fn add(&mut self, body: ProfileBody) -> Option<u64> {
        let wanted = size(&body);
        if wanted > self.limit {
            return None;
        }
        let mut dropped = 0_u64;
        while self.bytes.saturating_add(wanted) > self.limit {
            let (_, oldest) = self.waiting.pop_front()?;
            self.bytes = self.bytes.saturating_sub(size(&oldest));
            dropped = dropped.saturating_add(1);
        }
        self.last = self.last.saturating_add(1);
        self.bytes = self.bytes.saturating_add(wanted);
        self.waiting.push_back((self.last, body));
        Some(dropped)
    }

    pub fn oldest(&self) -> Option<(u64, &ProfileBody)> {
        self.waiting.front().map(|(number, body)| (*number, body))
    }

    /// Removes a profile, unless it was dropped.
    pub fn remove(&mut self, number: u64) {
        if self.oldest().is_some_and(|(oldest, _)| oldest == number)
            && let Some((_, body)) = self.waiting.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(size(&body));
        }
    }

    /// Puts two profiles in the place of one, unless that was dropped. Returns how many of the oldest were dropped for them.
    pub fn replace(&mut self, number: u64, halves: [ProfileBody; 2]) -> u64 {
        if self.oldest().is_none_or(|(oldest, _)| oldest != number) {
            return 0;
        }
        self.remove(number);
        for half in halves.into_iter().rev() {
            self.last = self.last.saturating_add(1);
            self.bytes = self.bytes.saturating_add(size(&half));
            self.waiting.push_front((self.last, half));
        }
        let mut dropped = 0_u64;
        // The halves may be a little longer than the whole.
        while self.bytes > self.limit
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(size(&oldest));
            dropped = dropped.saturating_add(1);
        }
        dropped
    }

    pub fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
