#!/usr/bin/env bash
# Format, lints, documentation, and what dependencies may be. A step of continuous integration (.ci/run), and no part of
# scripts/test.sh: another compiler's lints say nothing about whether this works.
#
#   scripts/lint.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin
mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(realpath "${CARGO_TARGET_DIR:-target}")
# A workspace of its own, as `fleet` is.
wasmtime=crates/bindings/jitscribe-wasmtime

step() {
    printf '\n== %s (%d s so far)\n' "$1" "$SECONDS"
}

step "format"
cargo fmt --all --check
(cd fuzz && cargo fmt --check)
(cd fleet && cargo fmt --check)
(cd $wasmtime && cargo fmt --check)

step "lints"
cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
# Programs that only the second tier builds.
cargo clippy --quiet --workspace --test live --locked -- -D warnings
# As a build instead of a check, it takes the dependencies that the tests have built: checked, they would be compiled once more.
(cd fleet && RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings \
    cargo build --quiet --all-targets --locked --target-dir "$target/fleet")
(cd $wasmtime && cargo clippy --quiet --all-targets --locked --target-dir "$target/wasmtime" -- -D warnings)
# The workspace turns features on that runtimes do without.
cargo clippy --quiet -p jitdump --no-default-features --locked -- -D warnings
# A library must not end the process that it is in for want of memory.
scripts/lint-in-process.sh --quiet
# Instructions of another machine, that the tests here never see.
cargo check --quiet --locked -p publish-valgrind -p jitscribe-preload --target aarch64-unknown-linux-gnu

step "documentation"
export RUSTDOCFLAGS="-D warnings"
cargo doc --quiet --workspace --no-deps --locked
(cd $wasmtime && cargo doc --quiet --no-deps --locked --target-dir "$target/wasmtime")

step "dependencies"
scripts/deny.sh

printf '\nscripts/lint.sh: all passed in %d s\n' "$SECONDS"
