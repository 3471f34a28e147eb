//! Decides what is sent when: a state machine without a clock, a network or a thread of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::memory::Memory;
use crate::profile_body::{BodyId, ProfileBody};
use crate::spool::{Content, Spool, SpoolError, Spooled, Usage};
use crate::verdict::{Cause, Partial, Verdict};

/// Profiles on their way to a server, one after the other, the oldest first.
#[derive(Debug)]
pub struct Delivery {
    spool: Option<Spool>,
    memory: Memory,
    backoff: Backoff,
    /// Nothing is sent before.
    due: Option<Instant>,
    in_flight: Option<(Held, BodyId)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Spooled(Spooled),
    InMemory(u64),
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this, and say what [became of it](Delivery::answered).
    Send(ProfileBody),
    /// Wait until then.
    Wait(Instant),
    /// Something was sent, and has no answer yet.
    InFlight,
    /// All was delivered.
    Nothing,
    /// Another process sends what is in the spool.
    OtherSender,
}

/// What adding a profile did.
#[derive(Debug)]
pub struct Pushed {
    /// Its identity.
    pub id: BodyId,
    /// Whether it waits already, and is sent once.
    pub was_there: bool,
    /// How many older profiles were dropped, because there was no space.
    pub dropped: u64,
    /// Why it is only in memory although there is a spool.
    pub not_spooled: Option<SpoolError>,
}

/// What happened to a profile.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server has it, with what it says of it.
    Delivered {
        /// Its identity.
        id: BodyId,
        /// What the server has not taken, or its remark.
        partial: Option<Partial>,
    },
    /// It is sent again later.
    Postponed {
        /// Its identity.
        id: BodyId,
        /// Why.
        cause: Cause,
        /// When.
        until: Instant,
    },
    /// The server takes nothing with these settings. The profile is kept, and sent again later.
    Refused {
        /// Its identity.
        id: BodyId,
        /// Why.
        cause: Cause,
        /// When it is tried again.
        until: Instant,
    },
    /// The server does not take this profile. It is not sent again.
    Rejected {
        /// Its identity.
        id: BodyId,
        /// Why.
        cause: Cause,
        /// Where it is kept, if there is a spool.
        path: Option<PathBuf>,
    },
    /// A file of the spool was damaged, and set aside.
    Damaged {
        /// Where it is.
        path: PathBuf,
    },
    /// The spool cannot be used now.
    SpoolFailed(SpoolError),
}

/// Why a profile cannot be pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// It is larger than all that may wait.
    #[error("the profile has {bytes} bytes, and {limit} may wait")]
    TooLarge {
        /// The profile's size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

/// How much waits without a spool.
pub const MEMORY_LIMIT: u64 = 64 << 20;

impl Delivery {
    /// Keeps profiles in memory, at most `limit` bytes.
    #[must_use]
    pub fn in_memory(limit: u64) -> Self {
        Self {
            spool: None,
            memory: Memory::new(limit),
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_mins(1)),
            due: None,
            in_flight: None,
        }
    }

    /// Keeps profiles on disk, and in memory, at most `limit` bytes, only those that cannot be written.
    #[must_use]
    pub fn with_spool(spool: Spool, limit: u64) -> Self {
        Self { spool: Some(spool), ..Self::in_memory(limit) }
    }

    /// With other waits between attempts.
    #[must_use]
    pub fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Takes a profile. With a spool, it is on the disk when this returns.
    ///
    /// # Errors
    /// If it is larger than all that may wait.
    pub fn push(&mut self, body: &ProfileBody) -> Result<Pushed, PushError> {
        let id = body.id();
        let not_spooled = match self.spool.as_ref().map(|spool| spool.add(body)) {
            Some(Ok(added)) => {
                return Ok(Pushed {
                    id,
                    was_there: added.was_there,
                    dropped: added.dropped,
                    not_spooled: None,
                });
            }
            Some(Err(SpoolError::TooLarge { bytes, limit })) => {
                return Err(PushError::TooLarge { bytes, limit });
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        let bytes = body.gzipped().len() as u64;
        match self.memory.add(body.clone()) {
            Some(dropped) => Ok(Pushed { id, was_there: false, dropped, not_spooled }),
            None => Err(PushError::TooLarge { bytes, limit: self.memory.limit() }),
        }
    }

    /// What to do at this time. Adds to `events` what happened to files of the spool.
    pub fn next(&mut self, now: Instant, events: &mut Vec<Event>) -> Next {
        if self.in_flight.is_some() {
            return Next::InFlight;
        }
        if let Some(due) = self.due.filter(|due| *due > now) {
            return if self.waiting() > 0 { Next::Wait(due) } else { Next::Nothing };
        }
        let mut has_other_sender = false;
        match self.next_of_spool(events) {
            Ok(Some(Next::OtherSender)) => has_other_sender = true,
            Ok(Some(next)) => return next,
            Ok(None) => {}
            Err(error) => {
                events.push(Event::SpoolFailed(error));
                // What is in memory does not need the spool.
                if self.memory.len() == 0 {
                    return Next::Wait(self.postpone(now, self.backoff.longest()));
                }
            }
        }
        if let Some((number, body)) = self.memory.oldest() {
            self.in_flight = Some((Held::InMemory(number), body.id()));
            return Next::Send(body.clone());
        }
        if has_other_sender { Next::OtherSender } else { Next::Nothing }
    }

    fn next_of_spool(&mut self, events: &mut Vec<Event>) -> Result<Option<Next>, SpoolError> {
        let Some(spool) = &mut self.spool else { return Ok(None) };
        loop {
            let Some(spooled) = spool.oldest()? else {
                if !spool.stop_sending() {
                    return Ok(None);
                }
                // A process that added a profile just before may rely on this one to send it.
                continue;
            };
            if !spool.is_sender()? {
                return Ok(Some(Next::OtherSender));
            }
            // The former sender may have sent it just now.
            if spool.oldest()?.as_ref() != Some(&spooled) {
                continue;
            }
            match spool.read(&spooled)? {
                Content::Whole(body) => {
                    let id = spooled.id();
                    self.in_flight = Some((Held::Spooled(spooled), id));
                    return Ok(Some(Next::Send(body)));
                }
                Content::Damaged(path) => events.push(Event::Damaged { path }),
                Content::Gone => {}
            }
        }
    }

    fn postpone(&mut self, now: Instant, wait: Duration) -> Instant {
        let until = now.checked_add(wait).unwrap_or(now);
        self.due = Some(until);
        until
    }

    /// Says what became of what was sent.
    pub fn answered(&mut self, verdict: Verdict, now: Instant, events: &mut Vec<Event>) {
        let Some((held, id)) = self.in_flight.take() else { return };
        match verdict {
            Verdict::Delivered(partial) => {
                self.due = None;
                self.backoff.reset();
                if let Err(error) = self.remove(&held) {
                    // It would be sent again at once, for ever.
                    self.postpone(now, self.backoff.longest());
                    events.push(Event::SpoolFailed(error));
                }
                events.push(Event::Delivered { id, partial });
            }
            Verdict::Retry { cause, after } => {
                let wait = self.backoff.after_failure(after);
                let until = self.postpone(now, wait);
                events.push(Event::Postponed { id, cause, until });
            }
            Verdict::Refused(cause) => {
                let until = self.postpone(now, self.backoff.longest());
                events.push(Event::Refused { id, cause, until });
            }
            Verdict::Rejected(cause) => {
                let path = match self.set_aside(&held) {
                    Ok(path) => path,
                    Err(error) => {
                        self.postpone(now, self.backoff.longest());
                        events.push(Event::SpoolFailed(error));
                        None
                    }
                };
                events.push(Event::Rejected { id, cause, path });
            }
        }
    }

    fn remove(&mut self, held: &Held) -> Result<(), SpoolError> {
        match (held, &self.spool) {
            (Held::Spooled(spooled), Some(spool)) => spool.remove(spooled),
            (Held::Spooled(_), None) => Ok(()),
            (Held::InMemory(number), _) => {
                self.memory.remove(*number);
                Ok(())
            }
        }
    }

    fn set_aside(&mut self, held: &Held) -> Result<Option<PathBuf>, SpoolError> {
        match (held, &self.spool) {
            (Held::Spooled(spooled), Some(spool)) => spool.set_aside(spooled).map(Some),
            _ => self.remove(held).map(|()| None),
        }
    }

    fn waiting(&self) -> u64 {
        self.usage().waiting
    }

    /// How much waits, in memory and in the spool. What the spool holds counts as nothing while it cannot be read.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let spooled = self.spool.as_ref().and_then(|spool| spool.usage().ok());
        let mut usage = spooled.unwrap_or_default();
        usage.waiting = usage.waiting.saturating_add(self.memory.len());
        usage.bytes = usage.bytes.saturating_add(self.memory.bytes());
        usage
    }

    /// How many profiles wait in memory alone, and are lost if the process ends.
    #[must_use]
    pub fn only_in_memory(&self) -> u64 {
        self.memory.len()
    }
}
