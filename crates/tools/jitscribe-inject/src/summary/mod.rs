//! What was done: the report of an injection.
//!
//! In come the samples by code, the descriptions of sampled codes, and the new recording. [`top`] finds the functions with the most
//! samples, of which [`jitted_function`] knows what belongs to one function. [`stacks`] counts how many call stacks are whole.
//!
//! Out goes a [`Report`](crate::Report). Nothing here imports what writes; earlier steps import the types of the report that they
//! fill: [`SourceReport`](report::SourceReport) where sources are read, and [`Top`](top::Top) where images are written.

pub mod jitted_function;
pub mod report;
pub mod stack_counts;
pub mod stacks;
pub mod top;
