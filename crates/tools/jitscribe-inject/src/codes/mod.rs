//! Finding the code: the jitdumps and perf maps that belong to a recording, and the table of all code that they describe.
//!
//! In comes a [`Recording`](crate::Recording). [`locate`] finds the files, without those of earlier processes ([`earlier_maps`]).
//! [`sources`] reads them into the [`code_table`], with what V8's code log ([`v8_log`]), QEMU's guests ([`qemu`]) and PHP's
//! interpreter ([`php`]) add, and [`runtime_frames`] knows the frames of code that its runtime does not describe. Code that a
//! mapped file names is left to it ([`named_by_file`]), unless the name is an inferred one ([`inferred_name`]).
//!
//! Out go [`Codes`](crate::Codes): all code, and a timeline for each address space, in the time of the recording's clock.
//! [`lookup`] and [`code_index`] answer which code was at an address at a time, and [`source_lines`] where its source is.

pub mod code_index;
pub mod code_lines;
pub mod code_numbers;
pub mod code_table;
pub mod earlier_maps;
pub mod function_hash;
pub mod inferred_name;
pub mod locate;
pub mod lookup;
pub mod named_by_file;
pub mod original_places;
pub mod php;
pub mod qemu;
pub mod runtime_frames;
pub mod source_lines;
pub mod sources;
pub mod unusable;
pub mod v8_log;
