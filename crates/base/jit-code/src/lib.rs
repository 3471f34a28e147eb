//! The terms that every crate of jitscribe uses for generated code: a piece of [`Code`] with its [`Line`]s, [`Inlined`] calls, [`Kind`] and
//! [`Unwind`] info, and for which machine ([`elf_machine`]) and byte order ([`Endian`]) it is.
#![no_std]
#![forbid(unsafe_code)]

mod code;
pub mod elf_machine;
mod endian;
mod kind;
pub mod leb128;
mod unwind;

pub use code::{Code, Inlined, Line};
pub use endian::Endian;
pub use kind::Kind;
pub use unwind::{Row, Unwind};
