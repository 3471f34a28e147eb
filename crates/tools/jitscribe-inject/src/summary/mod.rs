//! What was done: the report of an injection; and what readers of the new recording share.
//!
//! [`report`] says what was read and written, how many samples have names, and which memory no source describes ([`unnamed`]).
//! Which function of a profile a jitted code is of, [`jitted_function`] decides. [`stacks`] counts how many call stacks are whole.

pub mod demangle;
pub mod jitted_function;
pub mod report;
pub mod stack_counts;
pub mod stacks;
pub mod unnamed;
