//! What was done: the report of an injection.
//!
//! In come the samples by code, the descriptions of sampled codes, and the new recording. [`top`] finds the functions with the
//! most samples; which codes are of one function, [`jitted_function`] decides. [`stacks`] counts how many call stacks are whole.
//!
//! Out goes a [`Report`](crate::Report). Earlier steps import from here only what they fill for it:
//! [`SourceReport`](report::SourceReport) where sources are read, and [`Top`](top::Top) where images are written.

pub mod demangle;
pub mod jitted_function;
pub mod report;
pub mod stack_counts;
pub mod stacks;
pub mod top;
