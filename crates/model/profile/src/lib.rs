//! Profiles in memory: which functions ran, called by which, when, and in which compilation of them.
//!
//! A [`Profile`] is what all views of a recording are made of: reports, exports, annotated code, comparisons. It is a set of tables, whose
//! rows refer to each other by number:
//!
//! | Table | A row is |
//! |---|---|
//! | [`Function`] | a function of the source: name, file, line. The same for all its compilations |
//! | [`Code`] | a piece of machine code: one compilation of a jitted function, or a function in a file |
//! | [`Frame`] | an address in a code, or a call that was inlined there |
//! | [`Stack`] | a frame and the stack of its caller: a tree, in which callers come first |
//! | [`Samples`] | when a thread was seen with which stack |
//! | [`Process`], [`Thread`], [`Module`], [`Event`] | what the others refer to |
//!
//! [`Builder`] makes a profile, and stores equal rows once. [`Totals`] counts samples by function and code, [`CallTree`] merges stacks by function.
//! [`Heat`] says where in its code and source a function was sampled, and [`Comparison`] compares two profiles function by function, of which
//! [`FunctionKey`] says which are the same; [`ComparedTree`] compares their call trees. [`Selection`] restricts all of these to a span of time, threads, or an event. [`CodeSource`] is where views get machine code and sources from, which are
//! not in the profile.
//!
//! Names are bytes as their writers chose them: a program that prints them must spell out what would command a terminal. Times are
//! nanoseconds of the recording's clock.
//!
//! ```
//! use profile::{Builder, Frame, Function, FunctionKind, SampleRow};
//!
//! let mut builder = Builder::new();
//! let event = builder.event(b"cycles");
//! let process = builder.process(4711, b"app");
//! let thread = builder.thread(process, 4711, b"app");
//! let name = builder.string(b"main");
//! let main = builder.function(Function::new(name, FunctionKind::Native));
//! let frame = builder.frame(Frame::new(main));
//! let stack = builder.stack(None, frame);
//! builder.sample(SampleRow { time: 1_000, thread, event, weight: 1, stack });
//! let profile = builder.finish();
//! let totals = profile::Totals::all(&profile);
//! assert_eq!((totals.of_function(main).own, totals.of_function(main).total), (1, 1));
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod activities;
pub mod activity;
mod builder;
mod call_tree;
mod cleaning;
mod code;
mod code_key;
mod compared_tree;
mod comparison;
mod content_hash;
mod count;
mod function;
mod function_key;
mod heat;
mod id;
mod key_encoding;
mod listing;
#[cfg(test)]
mod made;
mod origin;
mod position;
mod profile;
mod runs;
mod sample;
mod sampled_stack;
mod selection;
mod shared_lines;
pub mod significance;
mod stack;
mod stack_key;
mod strings;
mod table;
mod tiers;
mod totals;
mod unnamed_runs;

pub use activities::{Activities, SampledWork, StackWork, UNNAMED_CODE, Work};
pub use builder::Builder;
pub use call_tree::{CallTree, Direction, Node};
pub use cleaning::{clean_name, clean_path};
pub use code::Code;
pub use code_key::CodeKey;
pub use compared_tree::{ComparedNode, ComparedTree};
pub use comparison::{Compared, ComparedFunction, Comparison, Measure};
pub use content_hash::ContentHash;
pub use count::Count;
pub use function::{Function, FunctionKind};
pub use function_key::{FunctionKey, Origin, Version};
pub use heat::Heat;
pub use id::{
    CodeId, EventId, FrameId, FunctionId, ModuleId, NodeId, ProcessId, StackId, StringId, ThreadId,
};
pub use listing::{CodeSource, ListedFrame, ListedLine, Listing, Source};
pub use origin::{Event, Module, ModuleKind, Process, Thread};
pub use position::Position;
pub use profile::{About, Missing, Profile};
pub use runs::Runs;
pub use sample::{SampleRow, Samples};
pub use sampled_stack::SampledStack;
pub use selection::Selection;
pub use shared_lines::{SharedLines, name_with_place};
pub use stack::{Frame, Stack};
pub use stack_key::stack_id;
pub use strings::Strings;
pub use tiers::Tiers;
pub use totals::Totals;
pub use unnamed_runs::UnnamedRuns;
