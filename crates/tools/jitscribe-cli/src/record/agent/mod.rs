//! What it takes to have a running process load an agent, whatever its runtime is: the process ([`target`]) and what it has mapped ([`maps`]), its `/tmp` ([`folder`]), waiting for it
//! ([`wait`]), and the pipe that keeps the agent active ([`session`]).

mod failure;
mod folder;
mod maps;
mod session;
mod target;
mod wait;

pub use failure::{Failure, plain};
pub use folder::{Folder, Name};
#[cfg(test)]
pub use maps::each_of;
pub use maps::{Mapping, Maps};
pub use session::{OfferedPipe, SessionPipe, let_go};
pub use target::{Root, Target};
pub use wait::{PAUSE, Wait};
