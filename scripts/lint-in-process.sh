#!/bin/sh
# Crates that live in somebody else's process use nothing that aborts it when memory is refused.
# The rules: lints/in-process/clippy.toml. Tests, benches and examples may use what they like.
set -eu
cd "$(dirname "$0")/.."
CLIPPY_CONF_DIR=$PWD/lints/in-process
export CLIPPY_CONF_DIR
packages=
for crate in \
    code-arena code-image jitscribe-guest jitscribe jitscribe-capi jitscribe-preload \
    publish-gdb publish-perf-map publish-unwind publish-valgrind publish-vtune publish-etw; do
    packages="$packages -p $crate"
done
deny="-D clippy::disallowed_types -D clippy::disallowed_methods -D clippy::disallowed_macros"
# shellcheck disable=SC2086 # one word for each crate, and for each lint
cargo clippy --lib --no-deps --features code-image/objects,code-image/jitdump $packages "$@" -- $deny
# Its part for Windows.
# shellcheck disable=SC2086
exec cargo clippy --lib --no-deps --target x86_64-pc-windows-gnu -p publish-unwind -p publish-etw "$@" -- $deny
