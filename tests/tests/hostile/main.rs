//! Hostile files, names and processes.

mod cost;
mod names;
mod outputs;
mod process;
mod storm;
