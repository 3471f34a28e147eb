#!/usr/bin/env bash
# Measures jitscribe side by side with perf inject --jit and plain copying, and prints the tables of
# docs/performance.md.
#
#   scripts/bench.sh quick    10,000 and 50,000 functions, recordings up to 100 MB; some minutes (default)
#   scripts/bench.sh full     up to 1 million functions and 1 GB; the better part of an hour, 5 GB of memory
#
#   scripts/bench.sh full --only functions --stock-functions 1000000 --limit 6000
#                             perf inject beside ours at 1 million functions, too: over an hour, 20 GB of memory
#   scripts/bench.sh full --only reading
#                             among others how long perf takes for source lines of what it injected itself
#                             (stopped after --limit, 600 seconds)
#
#   scripts/bench.sh quick --before OTHER/jitscribe
#                             also another version of jitscribe, by turns
#
#   scripts/bench.sh quick --only library
#                             what announcements cost, beside a flushed fprintf and a writev; half a minute
#
# Further words go to the program that measures: --runs N, --only functions|epochs|samples|reading|callgrind|library,
# --folder DIR, --stock-functions N, --limit SECONDS. What it writes into DIR (default /dev/shm) it removes at the end.
# `cargo bench -p benches` measures the parts by themselves.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

mode=${1:-quick}
[ $# -gt 0 ] && shift
case $mode in
    quick) ;;
    full) set -- --full "$@" ;;
    *)
        sed -n '/^set/q;2,$s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
release=${CARGO_TARGET_DIR:-target}/release
case " $* " in
    *' --only library '*)
        # The library is measured within the program: neither the command nor another tool is needed.
        command=$release/bench
        cargo build --quiet --release --locked -p benches --bins
        tools='no perf'
        ;;
    *)
        command=$release/jitscribe
        for tool in perf valgrind; do
            command -v $tool >/dev/null || {
                echo "bench.sh: $tool is missing: run scripts/setup.sh" >&2
                exit 1
            }
        done
        cargo build --quiet --release --locked -p jitscribe-cli -p benches --bins
        tools=$(perf --version)
        ;;
esac

printf '%s, Linux %s, %s processors; load %s\n\n' "$tools" "$(uname -r)" "$(nproc)" \
    "$(cut -d' ' -f1 /proc/loadavg)"
exec "$release/bench" run --jitscribe "$command" "$@"
