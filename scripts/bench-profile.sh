#!/bin/sh
# Measures how long it takes to read a recording of node into a profile, and how long perf takes to print it:
#   scripts/bench-profile.sh [SAMPLES]     (default 1,000,000)
# Prints processor time (user and system) and peak memory. perf's names of inlined calls are off, as they take hours.
set -eu
cd "$(dirname "$0")/.."
samples=${1:-1000000}

cargo build --quiet --release --locked -p jitscribe-cli -p jitscribe-profile-recording -p perf-data --example top --example repeat --bin jitscribe
target=${CARGO_TARGET_DIR:-target}/release
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$target/jitscribe" record -o "$folder/one.data" -- node tests/workloads/spin.js >/dev/null 2>&1
one=$("$target/examples/top" "$folder/one.data" | sed -n 's/ samples, .* stacks, .*//p')
"$target/examples/repeat" "$folder/one.data" "$folder/many.data" $(((samples + one - 1) / one))

measure() {
    name=$1
    shift
    python3 - "$name" "$@" <<'PYTHON'
import resource, subprocess, sys
name, *command = sys.argv[1:]
subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = used.ru_utime + used.ru_stime
print(f"{name:14} {seconds:8.2f} s of processor {used.ru_maxrss / 1024:8.0f} MiB")
PYTHON
}

"$target/examples/top" "$folder/many.data" | grep " stacks, "
measure profile "$target/examples/top" "$folder/many.data"
measure "perf script" perf script --no-inline -i "$folder/many.data"
