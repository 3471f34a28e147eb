//! A delivery with a clock, and a thread that speaks to the network.

use std::io;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel,
};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::answer::Unreachable;
use crate::delivery::Delivery;
use crate::event::{Event, Next, PushError, Pushed};
use crate::profile_body::ProfileBody;
use crate::spool::Usage;
use crate::transport::Transport;
use crate::verdict::Verdict;

/// Sends profiles from a thread of its own, so that the caller does not wait for a server.
///
/// Call [`push`](Self::push) for each profile, and [`retry`](Self::retry) now and then. Neither waits for the network; with a spool, `push` waits for the
/// disk. The space for what waits is bounded.
#[derive(Debug)]
pub struct Pusher {
    delivery: Delivery,
    to_send: SyncSender<ProfileBody>,
    verdicts: Receiver<Verdict>,
    /// What the thread answered, before it was asked for.
    received: Option<Verdict>,
}

/// What a pusher does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A profile was sent, and has no answer yet.
    Sending,
    /// The next attempt is at this time.
    Waiting(Instant),
    /// All was delivered.
    Idle,
    /// Another process sends what is in the spool.
    OtherSender,
}

fn serve(
    mut transport: impl Transport,
    bodies: &Receiver<ProfileBody>,
    verdicts: &Sender<Verdict>,
) {
    for body in bodies {
        let verdict = match transport.send(&body) {
            Ok(answer) => Verdict::of(transport.protocol(), &answer, SystemTime::now()),
            Err(unreachable) => unreachable.into(),
        };
        if verdicts.send(verdict).is_err() {
            return;
        }
    }
}

impl Pusher {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system allows no further thread.
    pub fn new(delivery: Delivery, transport: impl Transport + 'static) -> io::Result<Self> {
        let (to_send, bodies) = sync_channel(1);
        let (to_answer, verdicts) = channel();
        let builder = thread::Builder::new().name("profile-push".into());
        builder.spawn(move || serve(transport, &bodies, &to_answer))?;
        Ok(Self { delivery, to_send, verdicts, received: None })
    }

    /// Takes a profile, which is sent as soon as those before it are. With a spool, it is on the disk when this returns.
    ///
    /// # Errors
    /// If it is larger than all that may wait.
    pub fn push(&mut self, body: &ProfileBody) -> Result<Pushed, PushError> {
        self.delivery.push(body)
    }

    /// Takes the parts of a profile, all or none.
    ///
    /// # Errors
    /// If they are together larger than all that may wait.
    pub fn push_parts(&mut self, parts: &[ProfileBody]) -> Result<Vec<Pushed>, PushError> {
        self.delivery.push_parts(parts)
    }

    /// Takes the answer that has come, and sends what is due. Returns what to expect, and adds to `events` what happened.
    pub fn retry(&mut self, now: Instant, events: &mut Vec<Event>) -> State {
        let verdict = self.received.take().or_else(|| match self.verdicts.try_recv() {
            Ok(verdict) => Some(verdict),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(ended()),
        });
        if let Some(verdict) = verdict {
            self.delivery.answered(verdict, now, events);
        }
        match self.delivery.next(now, events) {
            Next::Send(body) => {
                // The thread is idle, as nothing is in flight. If it has ended, the next answer says so.
                let _ = self.to_send.try_send(body);
                State::Sending
            }
            Next::Wait(until) => State::Waiting(until),
            Next::InFlight => State::Sending,
            Next::Nothing => State::Idle,
            Next::OtherSender => State::OtherSender,
        }
    }

    /// Waits until there is an answer, at most this long. [`retry`](Self::retry) says what it is.
    pub fn wait(&mut self, longest: Duration) {
        if self.received.is_some() {
            return;
        }
        self.received = match self.verdicts.recv_timeout(longest) {
            Ok(verdict) => Some(verdict),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(longest);
                Some(ended())
            }
        };
    }

    /// How much waits.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.delivery.usage()
    }

    /// How many profiles wait in memory alone, and are lost if the process ends.
    #[must_use]
    pub fn only_in_memory(&self) -> u64 {
        self.delivery.only_in_memory()
    }
}

fn ended() -> Verdict {
    Unreachable::Broken { cause: "the thread that sends has ended".into() }.into()
}
