//! Divides a profile that is too long for one request into two that carry together what it carried.
//!
//! Requests are divided as they are encoded: what is in a spool has no other form. Samples are shared out, and each half gets the rows of the tables that its own samples refer to, and
//! no others, under new numbers. A field that is not known may hold such a number, so that a request with one is not divided.

mod error;
mod otlp;
mod pprof;
mod rows;
mod schema;
mod share;
mod wire;

pub use error::DivideError;
pub(crate) use otlp::halves as otlp_halves;
pub(crate) use pprof::halves as pprof_halves;
