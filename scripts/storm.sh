#!/usr/bin/env bash
# A storm over processes that announce code: kills, forks, clones, threads, limits, full file systems, a small cgroup, and each
# system call forbidden. Prints the table of docs/reliability.md, and fails if an announcement was lost, torn or mixed.
#
#   scripts/storm.sh [SECONDS]    about so long (default 300); root, for mounts and cgroups
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

seconds=${1:-300}
case $seconds in
    '' | *[!0-9]*)
        sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
cargo build --quiet --release --locked -p jitscribe-cli -p end-to-end --bin jitscribe --bin storm
release=${CARGO_TARGET_DIR:-target}/release
printf 'Linux %s, %s processors; load %s; %d s\n\n' "$(uname -r)" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" "$seconds"
exec "$release/storm" "$release/jitscribe" "$seconds"
