//! Integration tests of `found-code`.

mod expression;
mod expressions;
mod hostile;
mod memory;
mod traces;
