//! [Profiles](profile) as text.
//!
//! Each view is a value that `serde` can write as JSON, with a method that gives it as [`Line`]s for a terminal:
//!
//! | View | Shows |
//! |---|---|
//! | [`Top`] | the functions with the most samples |
//! | [`Tree`] | who called whom |
//! | [`Annotated`] | a function: its compilations, source lines and instructions with their samples |
//! | [`Difference`] | functions of two recordings whose samples differ by more than chance |
//!
//! [`find`] finds a function by what a user types. Names, paths and sources in lines are foreign text: who prints lines escapes what
//! would command the terminal.
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

mod activity_text;
mod annotated;
mod annotated_text;
mod difference;
mod figures;
mod find;
mod function_info;
mod line;
#[cfg(test)]
mod made;
mod sources;
#[cfg(test)]
mod tests;
mod top;
mod tree;

pub use activity_text::activity_text;
pub use annotated::{
    Annotated, AnnotatedCode, AnnotatedInstruction, AnnotatedTarget, Generations, Part, Wanted,
};
pub use annotated_text::Parts;
pub use difference::{Difference, DifferentFunction};
pub use figures::percent_in_text;
pub use find::{Found, find, hottest};
pub use function_info::FunctionInfo;
pub use line::{Line, Span, Style};
pub use sources::SourceLine;
pub use top::{Sort, TierSamples, Top, TopRow};
pub use tree::{Tree, TreeNode};
