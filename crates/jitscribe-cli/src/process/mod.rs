//! A running process, or the core file of one, and the code logs it keeps.

mod core;
mod inside;
mod logs;
mod memory;
mod told;
mod wake;

pub use self::core::Core;
pub use inside::FolderInside;
pub use logs::{Log, inner_pid, logs_of, parent, processes};
pub use memory::Memory;
pub use told::{Beside, CodeBytes, Told, dump_of};
use wake::wake;
