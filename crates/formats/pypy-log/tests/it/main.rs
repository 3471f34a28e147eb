//! The reader of PyPy's logs: a log of PyPy 7.3.11, and any bytes.

mod properties;
mod real;
