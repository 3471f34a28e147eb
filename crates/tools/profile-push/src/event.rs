//! What a delivery says: what is to be done next, and what happened.

use std::path::PathBuf;
use std::time::Instant;

use crate::profile_body::{BodyId, ProfileBody};
use crate::spool::SpoolError;
use crate::verdict::{Cause, Partial};

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this, and say what [became of it](crate::Delivery::answered).
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
        /// Its size, gzipped.
        bytes: u64,
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
    /// It was too long for the server, and is sent in two parts.
    Divided {
        /// The identity of the whole.
        id: BodyId,
        /// The server's answer.
        cause: Cause,
        /// How many older profiles were dropped, because the parts take more space.
        dropped: u64,
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
