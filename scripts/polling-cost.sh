#!/usr/bin/env bash
# Measures what `jitscribe record -p` takes while it records: the threads and workers that read lists, memory and files of the recorded processes, without
# perf itself and without what is done at the end. Prints the table of docs/performance.md ("Reading the recorded processes").
#
#   scripts/polling-cost.sh [PROCESSES] [SECONDS]           default: 20 processes, 20 seconds
#
# The processes are of one kind in each row: sleep (no code to read), node (idle, with a JIT compiler's memory), and
# tests/workloads/registers.c (one function registered with GDB, which runs in a loop at low priority).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

processes=${1:-20}
seconds=${2:-20}
for tool in perf node cc python3; do
    command -v "$tool" >/dev/null || {
        echo "polling-cost.sh: $tool is missing: run scripts/setup.sh test" >&2
        exit 1
    }
done
cargo build --quiet --release --locked -p jitscribe-cli
jitscribe=$(realpath "${CARGO_TARGET_DIR:-target}/release/jitscribe")
dir=$(mktemp -d)
cc -O1 tests/workloads/registers.c -o "$dir/registers"
pids=()
finish() {
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT

# The processor time, in milliseconds, of a process and its descendants, but for perf and what that runs.
taken() {
    python3 - "$1" <<'END'
import os, sys
def stat(pid):
    text = open(f"/proc/{pid}/stat").read()
    name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
    return name, sum(map(int, rest[11:15]))
def total(pid):
    name, ticks = stat(pid)
    if name == "perf":
        return 0
    children = []
    for task in os.listdir(f"/proc/{pid}/task"):
        children += open(f"/proc/{pid}/task/{task}/children").read().split()
    return ticks + sum(total(child) for child in children)
print(total(sys.argv[1]) * 1000 // os.sysconf("SC_CLK_TCK"))
END
}

start() {
    case $1 in
        sleep) sleep 1000 & ;;
        node) node -e 'setInterval(() => {}, 1000)' & ;;
        registers) nice -n 19 "$dir/registers" plain 1000 >/dev/null & ;;
    esac
    pids+=($!)
}

echo "| $processes processes | processor time, of a core | for each process and second |"
echo "|---|---:|---:|"
for kind in sleep node registers; do
    pids=()
    for _ in $(seq "$processes"); do start "$kind"; done
    sleep 1
    list=$(IFS=,; echo "${pids[*]}")
    "$jitscribe" record --quiet -F 19 -e cpu-clock --call-graph none --allow-empty -o "$dir/it.data" --force \
        -p "$list" -- sleep $((seconds + 3)) >"$dir/out" 2>&1 &
    recorder=$!
    # What is read at the beginning is read once.
    sleep 2
    before=$(taken $recorder)
    sleep "$seconds"
    after=$(taken $recorder)
    wait $recorder || {
        cat "$dir/out" >&2
        exit 1
    }
    kill "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
    python3 -c "
took = $after - $before
print(f'| $kind | {took / $seconds / 10:.2f} % | {took * 1000 / $seconds / $processes:.0f} µs |')"
done
