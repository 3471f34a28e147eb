//! Where samples come from: processes, threads, files, events.

use crate::id::{ProcessId, StringId};

/// A process: what one process id meant, from its first event to the next with the same id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its last name (`comm`).
    pub name: StringId,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Its process.
    pub process: ProcessId,
    /// Its id; that of the process for the main thread.
    pub tid: u32,
    /// Its last name (`comm`).
    pub name: StringId,
}

/// A file with machine code, or the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// What it is.
    pub kind: ModuleKind,
    /// The path under which it was mapped.
    pub path: StringId,
    /// Its GNU build-id; empty if it has none.
    pub build_id: Vec<u8>,
}

/// What a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// A program or a library.
    File,
    /// An object file that jitscribe made of jitted code.
    Image,
    /// The kernel, or one of its modules.
    Kernel,
}

/// What a sample counts: an event of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// As perf names it: `cycles`, `cpu-clock`.
    pub name: StringId,
}
