//! Tests that need libunwind (Debian: libunwind8). Once it is loaded, it belongs to the process, so these tests are a program of their own.
#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]

#[path = "../it/common/mod.rs"]
mod common;
mod libunwind;
mod nongnu;
