//! Collections for a library that runs inside another program's process. A refused allocation is an ordinary result
//! and does not end the process.
//!
//! The collections of `std` abort the process when an allocation is refused. The types here have the same methods.
//! What they do when an allocation is refused depends on the context:
//!
//! - Within [`attempt`], the operation does nothing, and the attempt as a whole returns [`Refused`]. The caller
//!   discards what was built and reports that memory was refused.
//! - Elsewhere they abort, as `std` does. This protects a tool that uses the same code without an attempt: otherwise
//!   it would produce a truncated file without noticing.
//!
//! ```
//! use jitscribe_fallible::{Refused, Vec, attempt};
//!
//! fn encode(numbers: &[u32]) -> Result<Vec<u8>, Refused> {
//!     attempt(|| {
//!         let mut out = Vec::new();
//!         for number in numbers {
//!             out.extend_from_slice(&number.to_le_bytes());
//!         }
//!         out
//!     })
//! }
//! # assert_eq!(encode(&[1]).unwrap().as_slice(), [1, 0, 0, 0]);
//! ```
//!
//! One check at the end of an operation replaces a check after each push. This suits values that are built and then
//! used. Where a value outlives the attempt and other code relies on its content, use the methods whose names begin
//! with `try_`: they report a refusal at once and leave the collection unchanged.

mod attempt;
mod boxed;
#[cfg(unix)]
mod env;
mod hash_map;
mod map;
mod os_error;
mod path;
mod shared;
mod text;
mod vec;
mod vec_deque;

pub use attempt::{Refused, attempt, is_attempting, refuse, so_far};
pub use boxed::{Place, boxed, leaked};
#[cfg(unix)]
pub use env::variable;
pub use hash_map::HashMap;
pub use map::Map;
pub use os_error::{IoError, OsError};
pub use path::PathText;
pub use shared::Shared;
pub use text::Text;
pub use vec::{Vec, concat};
pub use vec_deque::VecDeque;

/// Creates a [`Vec`] that contains the given elements: the `vec!` of this crate.
#[macro_export]
macro_rules! vec {
    () => { $crate::Vec::new() };
    ($element:expr; $count:expr) => { $crate::Vec::repeated($element, $count) };
    ($($element:expr),+ $(,)?) => { $crate::Vec::from_array([$($element),+]) };
}

/// Creates a [`Text`] from format arguments: the `format!` of this crate.
#[macro_export]
macro_rules! text {
    ($($arguments:tt)*) => { $crate::Text::formatted(::std::format_args!($($arguments)*)) };
}
