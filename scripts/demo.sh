#!/usr/bin/env bash
# The main job, from a bare Debian 12 on: installs what is missing, builds jitscribe, and runs its demo: a small JIT
# compiler recorded by perf, its code brought into the recording, and what perf then shows.
#
#   scripts/demo.sh [options of jitscribe demo]
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

scripts/setup.sh run
cargo build --release --locked -p jitscribe-cli -p demo-jit
exec target/release/jitscribe demo "$@"
