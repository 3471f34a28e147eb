//! What a library inside a host process needs so that the host does not notice it: threads that take none of the host's signals,
//! descriptors out of the host's way, work before a crash signal ends the process, and requests to Valgrind.
//!
//! Internal to jitscribe: its interface may change with any version.

#![warn(missing_docs)]
#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
mod at_exit;
#[cfg(target_os = "linux")]
mod callgrind;
pub mod crash_signal;
mod descriptor;
#[cfg(unix)]
mod file;
#[cfg(target_os = "linux")]
mod futex;
#[cfg(target_os = "linux")]
mod handlers;
#[cfg(unix)]
mod limits;
mod lock_owner;
mod notifier;
pub mod sanitizers;
#[cfg(unix)]
mod session_pipe;
#[cfg(target_os = "linux")]
mod signal_mask;
mod signals;
mod status;
mod thread;
mod uncounted;
pub mod valgrind;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod weak;
#[cfg(target_os = "linux")]
mod word;

#[cfg(target_os = "linux")]
pub use at_exit::at_exit;
pub use descriptor::high_descriptor;
#[cfg(unix)]
pub use descriptor::moved_out_of_the_way;
#[cfg(unix)]
pub use file::OwnFile;
#[cfg(target_os = "linux")]
pub use futex::sleep_if_refused;
#[cfg(target_os = "linux")]
pub use handlers::handlers_may_run;
#[cfg(unix)]
pub use limits::file_size_limit;
pub use lock_owner::{Holder, LockOwner};
pub use notifier::Notifier;
#[cfg(unix)]
pub use session_pipe::SessionPipe;
pub use signals::{SignalsHeld, WithoutCancellation, hold_signals, without_cancellation};
pub use status::{begin_of, own_status};
pub use thread::spawn;
#[cfg(target_os = "linux")]
pub use thread::thread_id;
pub use uncounted::{Uncounted, uncounted};
#[cfg(target_os = "linux")]
pub use word::is_word_at;
