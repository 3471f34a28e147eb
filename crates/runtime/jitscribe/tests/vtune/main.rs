//! Code that is announced is reported to the collector that the environment names.
//!
//! The collector is that of the tests of `publish-vtune`, which writes down each call. The program that loads it is this
//! program itself, in a role.
#![allow(clippy::print_stdout)] // there is no harness to do this

#[cfg(target_os = "linux")]
mod linux;

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
