#!/bin/sh
# Measures what it takes to read recordings of node, side by side with perf, samply and hotspot's perfparser:
#   scripts/bench-profile.sh [SAMPLES]     (default 1,000,000)
# Prints processor time (user and system) and peak memory, the median of three runs; of commands that take longer than a minute, one.
# The first recording has stacks by frame pointers, and its samples are repeated; the second has copies of stacks. perf's names of inlined calls are off,
# as they take hours. Needs what scripts/setup.sh live installs, and compiles samply as released.
set -eu
cd "$(dirname "$0")/.."
samples=${1:-1000000}
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}

cargo build --quiet --release --locked -p jitscribe-cli -p jitscribe-profile-recording -p perf-data --example top --example repeat --bin jitscribe
target=${CARGO_TARGET_DIR:-target}/release
version=$(sed -n 's/^samply=//p' scripts/setup.sh)
if [ "$("$target/samply/bin/samply" --version 2>/dev/null)" != "samply $version" ]; then
    cargo install samply --version "$version" --locked --quiet --root "$target/samply" --target-dir "$target/samply/build"
    rm -rf "$target/samply/build"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

measure() {
    python3 - "$@" <<'PYTHON'
import resource, statistics, subprocess, sys
name, *command = sys.argv[1:]
seconds, memory = [], 0
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    memory = after.ru_maxrss
    if seconds[-1] > 60:
        break
print(f"{name:32} {statistics.median(seconds):8.2f} s {memory / 1024:8.0f} MiB", flush=True)
PYTHON
}

# Reads one recording with each of the tools.
compare() {
    "$target/examples/top" "$1" | grep " stacks, "
    measure "profile" "$target/examples/top" "$1"
    measure "jitscribe report" "$target/jitscribe" report --force -i "$1" -o "$folder/report.html"
    measure "jitscribe report --stdio" "$target/jitscribe" report --stdio -i "$1"
    measure "perf script --no-inline" perf script --no-inline -i "$1"
    measure "perf report --stdio --no-inline" perf report --stdio --no-inline -i "$1"
    measure "samply import" "$target/samply/bin/samply" import --save-only -o "$folder/samply.json.gz" "$1"
    measure "hotspot-perfparser" "$cache/hotspot/usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser" --input "$1" --output "$folder/hotspot"
}

"$target/jitscribe" record -o "$folder/one.data" -- node tests/workloads/spin.js >/dev/null 2>&1
one=$("$target/examples/top" "$folder/one.data" | sed -n 's/ samples, .* stacks, .*//p')
"$target/examples/repeat" "$folder/one.data" "$folder/many.data" $(((samples + one - 1) / one))
compare "$folder/many.data"

"$target/jitscribe" record --call-graph dwarf -o "$folder/copied.data" -- node tests/workloads/spin.js >/dev/null 2>&1
compare "$folder/copied.data"
