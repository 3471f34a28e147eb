#!/usr/bin/env bash
# The main job, from a bare Debian 12 on: installs what is missing, builds jitscribe, and runs its demo: a small JIT
# compiler recorded by perf, its code brought into the recording, and what perf then shows. Where perf is missing or not allowed to record,
# as in most containers, the demo says how to allow it, and shows a recording that comes with it.
#
#   scripts/demo.sh [options of jitscribe demo]
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

scripts/setup.sh run
# Built for a short run (Cargo.toml), and without what the demo does not use. With frame pointers, perf's call stacks reach the caller of main.
flag=-Cforce-frame-pointers=yes
if [ -n "${RUSTFLAGS:-}" ]; then
    # The variable replaces cargo's own setting.
    export RUSTFLAGS="$RUSTFLAGS $flag"
fi
cargo build --profile demo --config "build.rustflags=['$flag']" --locked --no-default-features -p jitscribe-cli -p demo-jit
exec "${CARGO_TARGET_DIR:-target}/demo/jitscribe" demo "$@"
