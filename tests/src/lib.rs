//! What the end-to-end tests share: running the real tools, and comparing what they print.
//!
//! Everything here panics with a message made for the person who reads a failed test; a tool that is not
//! installed is such a failure and never a reason to skip.

pub mod addr2line;
pub mod bridge;
pub mod calls;
pub mod chains;
pub mod class_files;
pub mod compare;
pub mod corpus;
pub mod counted;
pub mod debugger;
pub mod demo;
pub mod engines;
pub mod folder;
pub mod java;
pub mod jitscribe;
pub mod line_oracle;
pub mod live;
pub mod map_oracle;
pub mod perf;
pub mod pprof;
pub mod profile;
pub mod profiles;
pub mod programs;
pub mod receiver;
pub mod record;
pub mod recordings;
pub mod running;
pub mod runtimes;
pub mod sample;
pub mod sampled;
pub mod stacks;
pub mod synthetic;
pub mod tool;
pub mod truth;
pub mod viewers;
