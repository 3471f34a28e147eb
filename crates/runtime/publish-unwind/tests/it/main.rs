//! The integration tests, as one program.

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod common;
mod objects;
mod through;
mod windows_refused;
mod windows_walks;

/// With tools of the second tier (`scripts/test.sh --live`).
#[cfg(all(unix, target_arch = "x86_64"))]
mod live {
    mod cost;
}
