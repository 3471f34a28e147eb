//! What the name of a code says: the function, where it is, and the marks of the compiler.
//!
//! A runtime has one text to describe a code in a perf map, and most put more into it than the function's name. A function is
//! compiled several times, so they add the compiler's tier or a number; and there is no other place for the file and the line.
//! What is counted, compared or shown by function needs the parts. Whatever shows names reads them here: the table is in
//! [`rules`]. The name as the runtime wrote it stays the symbol of the code.

mod function_name;
mod place;
mod rules;
mod webassembly;

pub use function_name::{FunctionName, NameKind};
