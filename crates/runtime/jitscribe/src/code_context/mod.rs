//! OpenTelemetry's process context (OTEP 4719): says to readers outside where the code logs of the process are.
//!
//! A process has at most one context. So all scribes of this copy of the library share one, and it is withdrawn when another part
//! of the process, such as an OpenTelemetry SDK, publishes one: that one counts, and its owner can add our attributes
//! ([`CodeContext`]). `docs/design/guest.md` has the reasons.

mod attributes;
#[cfg(target_os = "linux")]
mod fork_word;
#[cfg(target_os = "linux")]
mod others;
#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod publication;
mod shared;
mod table;

pub use attributes::CodeContext;
pub use process_context::CodeLog;

#[cfg(target_os = "linux")]
pub(crate) use shared::is_wanted;
pub(crate) use shared::{Wish, add, look, make_way};
