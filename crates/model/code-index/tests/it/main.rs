//! Answers, compared with a memory that the same events change byte by byte.

mod dumps;
mod logs;
mod model;
mod sources;
