//! Sends profiles to servers: OTLP over HTTP and gRPC, and Pyroscope.
//!
//! A [`ProfileBody`] is what is sent: an encoded request of OTLP, or a pprof file for Pyroscope. A [`Pusher`] takes bodies, keeps them until the server has
//! them, and sends one after the other:
//!
//! - **At least once.** With a [`Spool`], a profile is on the disk before it is sent, and is removed when the server has it. A body is sent again unchanged: the IDs of
//!   the profiles in it stay the same, so that receivers can recognize them.
//! - **Bounded.** Spool and memory have a limit. Beyond it, the oldest profiles are dropped and counted.
//! - **Divided.** [`ProfileBody::divided`] keeps requests below a limit; one that a server finds too long is sent in halves.
//! - **Polite.** [`Backoff`] doubles waits and adds jitter; `Retry-After` and gRPC's `RetryInfo` are obeyed. [`Verdict`] says what an answer means.
//!
//! [`Delivery`] decides what is sent when. It has no clock, no thread and no network: time is a parameter, and a [`Transport`] carries bodies. [`HttpClient`] is the one
//! for servers.
//!
//! ```no_run
//! # #[cfg(feature = "client")] {
//! use std::time::{Duration, Instant};
//! use profile_push::{BodyKind, Delivery, Destination, HttpClient, ProfileBody, Pusher, Spool, MEMORY_LIMIT};
//!
//! let destination = Destination::otlp_http("http://localhost:4318")?;
//! let spool = Spool::open("/var/spool/profiles".as_ref(), BodyKind::Otlp, 256 << 20)?;
//! let client = HttpClient::new(destination, Default::default())?;
//! let mut pusher = Pusher::new(Delivery::with_spool(spool, MEMORY_LIMIT), client)?;
//!
//! # let request = [];
//! pusher.push(&ProfileBody::otlp(&request))?;
//! let mut events = Vec::new();
//! // Now and then:
//! pusher.retry(Instant::now(), &mut events);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod answer;
mod backoff;
mod delivery;
mod destination;
mod divide;
#[cfg(feature = "client")]
mod environment;
mod event;
mod headers;
#[cfg(feature = "client")]
mod http_client;
mod memory;
mod message;
mod profile_body;
mod pusher;
mod spool;
mod status_code;
#[cfg(feature = "client")]
mod tls;
mod transport;
mod verdict;

pub use answer::{Answer, Unreachable};
pub use backoff::{Backoff, LONGEST_OF_SERVER};
pub use delivery::{Delivery, MEMORY_LIMIT};
pub use destination::{Destination, DestinationError, Protocol};
pub use divide::DivideError;
#[cfg(feature = "client")]
pub use environment::{Environment, EnvironmentError};
pub use event::{Event, Next, PushError, Pushed};
pub use headers::{HeaderError, Headers, decode_pair};
#[cfg(feature = "client")]
pub use http_client::{HttpClient, HttpSettings};
pub use profile_body::{BodyId, BodyKind, ProfileBody};
pub use pusher::{Pusher, State};
pub use spool::{Added, Content, Spool, SpoolError, Spooled, Usage};
pub use status_code::GrpcCode;
#[cfg(feature = "client")]
pub use tls::{TlsError, TlsSettings};
pub use transport::Transport;
pub use verdict::{Cause, Partial, Verdict};
