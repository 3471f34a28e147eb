//! Hostile files, names and processes.

mod cost;
mod names;
mod process;
mod storm;
