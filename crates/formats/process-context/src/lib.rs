//! OpenTelemetry's process context: how a process describes itself to readers outside, such as profilers.
//!
//! [OTEP 4719](https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4719-process-ctx.md) defines
//! it. A mapping with a [well-known name](may_be_context) begins with a [`Header`], which leads to the payload, a protobuf message
//! `ProcessContext`. A process has at most one.
//!
//! [`read`] takes a [`Memory`], so it works on a live process, on a core file, and on bytes. All bytes are treated as hostile.
//! Nothing here allocates.
//!
//! [`encode`] writes the attributes by which a process says where its code logs are ([`CodeLog`]): `docs/otep-code-context.md` of
//! the project specifies them.
//!
//! ```
//! use process_context::{CodeLog, Context};
//!
//! let mut bytes = [0; 256];
//! let logs = [CodeLog { address: 0x7f00_0000_0000, size: 64 << 20, version: 1 }];
//! let size = process_context::encode(None, &logs, &mut bytes).expect("enough space");
//! let context = Context::new(&bytes[..size]);
//! assert!(context.code_logs().eq(logs.map(Ok)));
//! ```
#![no_std]
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

mod code_logs;
mod context;
mod encode;
mod error;
mod header;
mod maps;
mod memory;
mod value;
mod wire;

pub use code_logs::{CodeLog, CodeLogs, keys};
pub use context::{Attributes, Context};
pub use encode::{encode, encode_attributes};
pub use error::{DecodeError, ReadError};
pub use header::{Header, LARGEST_PAYLOAD};
pub use maps::{MAPPING_NAME, Mapping, may_be_context};
pub use memory::{Memory, Published, read};
pub use value::{Attribute, Entries, Value, Values};
