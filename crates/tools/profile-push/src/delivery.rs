//! Decides what is sent when: a state machine without a clock, a network or a thread of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::event::{Event, Next, PushError, Pushed};
use crate::memory::Memory;
use crate::profile_body::{BodyId, ProfileBody};
use crate::spool::{Content, Spool, SpoolError, Spooled, Usage};
use crate::verdict::{Cause, Verdict};

/// Profiles on their way to a server, one after the other, the oldest first.
#[derive(Debug)]
pub struct Delivery {
    spool: Option<Spool>,
    memory: Memory,
    backoff: Backoff,
    /// Nothing is sent before.
    due: Option<Instant>,
    in_flight: Option<InFlight>,
}

/// What was sent, and has no answer yet.
#[derive(Debug)]
struct InFlight {
    held: Held,
    id: BodyId,
    bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Spooled(Spooled),
    InMemory(u64),
}

/// How much waits without a spool.
pub const MEMORY_LIMIT: u64 = 64 << 20;

/// A profile is not divided that is shorter, unpacked: no receiver can mean the length of such a one.
const SHORTEST_DIVIDED: u64 = 4096;

/// The parts of a profile that is too long; `None` if it cannot be divided.
fn halves(body: &ProfileBody) -> Option<[ProfileBody; 2]> {
    body.unpacked_length().ok().filter(|length| *length >= SHORTEST_DIVIDED)?;
    body.halves().ok()?
}

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

    /// Takes the parts of a profile, all or none.
    ///
    /// # Errors
    /// If they are together larger than all that may wait: the last ones would push out the first ones.
    pub fn push_parts(&mut self, parts: &[ProfileBody]) -> Result<Vec<Pushed>, PushError> {
        let sizes = || parts.iter().map(|part| part.gzipped().len() as u64);
        match &self.spool {
            Some(spool) => {
                if let Err(SpoolError::TooLarge { bytes, limit }) = spool.fits(sizes()) {
                    return Err(PushError::TooLarge { bytes, limit });
                }
            }
            None => {
                let bytes = sizes().fold(0_u64, u64::saturating_add);
                let limit = self.memory.limit();
                if bytes > limit {
                    return Err(PushError::TooLarge { bytes, limit });
                }
            }
        }
        parts.iter().map(|part| self.push(part)).collect()
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
            let bytes = body.gzipped().len() as u64;
            self.in_flight = Some(InFlight { held: Held::InMemory(number), id: body.id(), bytes });
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
                    let bytes = body.gzipped().len() as u64;
                    self.in_flight = Some(InFlight { held: Held::Spooled(spooled), id, bytes });
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
        let Some(InFlight { held, id, bytes }) = self.in_flight.take() else { return };
        match verdict {
            Verdict::Delivered(partial) => {
                self.due = None;
                self.backoff.reset();
                if let Err(error) = self.remove(&held) {
                    // It would be sent again at once, for ever.
                    self.postpone(now, self.backoff.longest());
                    events.push(Event::SpoolFailed(error));
                }
                events.push(Event::Delivered { id, bytes, partial });
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
            Verdict::TooLong(cause) => self.divide(&held, id, cause, now, events),
            Verdict::Rejected(cause) => self.reject(&held, id, cause, now, events),
        }
    }

    fn reject(
        &mut self,
        held: &Held,
        id: BodyId,
        cause: Cause,
        now: Instant,
        events: &mut Vec<Event>,
    ) {
        let path = match self.set_aside(held) {
            Ok(path) => path,
            Err(error) => {
                self.postpone(now, self.backoff.longest());
                events.push(Event::SpoolFailed(error));
                None
            }
        };
        events.push(Event::Rejected { id, cause, path });
    }

    /// Puts two parts in the place of a profile.
    fn divide(
        &mut self,
        held: &Held,
        id: BodyId,
        cause: Cause,
        now: Instant,
        events: &mut Vec<Event>,
    ) {
        let replaced = match (held, &self.spool) {
            (Held::Spooled(spooled), Some(spool)) => match spool.read(spooled) {
                Ok(Content::Whole(body)) => {
                    halves(&body).map(|halves| spool.replace(spooled, &halves))
                }
                Ok(Content::Damaged(path)) => return events.push(Event::Damaged { path }),
                // Another profile needed its space.
                Ok(Content::Gone) => return,
                Err(error) => Some(Err(error)),
            },
            (Held::Spooled(_), None) => None,
            (Held::InMemory(number), _) => {
                let oldest = self.memory.oldest().filter(|(oldest, _)| oldest == number);
                // As above.
                let Some((_, body)) = oldest else { return };
                halves(body).map(|halves| Ok(self.memory.replace(*number, halves)))
            }
        };
        match replaced {
            None => self.reject(held, id, cause, now, events),
            Some(Ok(dropped)) => {
                self.due = None;
                self.backoff.reset();
                events.push(Event::Divided { id, cause, dropped });
            }
            Some(Err(error)) => {
                self.postpone(now, self.backoff.longest());
                events.push(Event::SpoolFailed(error));
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
