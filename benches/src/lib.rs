//! Workloads for the measurements, and how they are measured.
//!
//! * [`shape`] says what the code of a workload looks like;
//! * [`jit`] is a process that has such code, runs it and dumps it, to be recorded by perf;
//! * [`grow`] makes a long recording of a short one;
//! * [`profile`] and [`logs`] make large files such as valgrind's tools write;
//! * [`built`] builds programs that print figures of their own;
//! * [`measure`] runs a command and says what it took;
//! * [`library`] measures what the library costs a runtime, beside what runtimes do without it;
//! * [`case`](mod@case) records a workload, and sets jitscribe, perf and plain copying side by side on it;
//! * [`table`] prints.

pub mod built;
pub mod case;
pub mod grow;
pub mod jit;
pub mod library;
pub mod logs;
pub mod measure;
pub mod profile;
pub mod shape;
pub mod table;
