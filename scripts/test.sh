#!/usr/bin/env bash
# All tests, from a bare Debian 12 on: installs what is missing, checks format, lints and docs, runs every test
# with the real tools, and every fuzz target for a short while.
#
#   scripts/test.sh
#
# FUZZ_SECONDS (default 15) is the time for each fuzz target.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

step() {
    printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"
}

step "what the tests need"
scripts/setup.sh test

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --quiet --workspace --all-targets -- -D warnings
# The workspace turns features on that runtimes do without.
cargo clippy --quiet -p jitdump --no-default-features -- -D warnings
# Instructions of another machine, that the tests here never see.
cargo build --quiet -p publish-valgrind --target aarch64-unknown-linux-gnu

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps

step "building the tests"
cargo test --quiet --workspace --no-run

step "tests"
# What was built with them. Else the end-to-end tests build these programs by themselves, for which dependencies have
# fewer features: Cranelift would be compiled once more.
built=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
# No test links it, so that none of the above has built it.
cargo build --quiet -p jitscribe-preload
JITSCRIBE_PRELOAD=$built/libjitscribe_preload.so JITSCRIBE_BIN=$built/jitscribe DEMO_JIT_BIN=$built/demo-jit cargo test --quiet --workspace --no-fail-fast

step "Windows"
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$PWD/scripts/wine.sh
cargo test --quiet --target x86_64-pc-windows-gnu --no-fail-fast -p unwind-info -p publish-unwind-windows
cargo test --quiet --target x86_64-pc-windows-gnu --no-fail-fast -p jitscribe --lib --test windows
cargo build --quiet --target x86_64-pc-windows-gnu -p jitscribe-capi -p jitscribe-shared

step "sanitizers"
scripts/sanitize.sh

step "fuzz targets"
scripts/fuzz.sh "${FUZZ_SECONDS:-15}"

printf '\nscripts/test.sh: all passed in %d s\n' "$SECONDS"
