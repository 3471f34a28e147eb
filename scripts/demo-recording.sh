#!/usr/bin/env bash
# Makes the recording that `jitscribe demo` shows where perf cannot record: crates/tools/jitscribe-cli/src/demo/shipped/.
#
#   scripts/demo-recording.sh
#
# It has to be run again when the demo's program or its compiler change in a way that users should see. The recording contains paths and the
# name of the host, so it is made in a mount namespace, under a path and a name of their own; this needs root. DEMO_JIT_BIN names a demo-jit
# that is built already.
#
# expected.tsv has the samples of each function, counted without jitscribe: by perf's addresses and times, and what the demo wrote itself of
# its code (--truth).
set -euo pipefail
cd "$(dirname "$0")/.."

shipped=$PWD/crates/tools/jitscribe-cli/src/demo/shipped
if [ -z "${DEMO_JIT_BIN:-}" ]; then
    cargo build --release --locked -p demo-jit
    DEMO_JIT_BIN=${CARGO_TARGET_DIR:-target}/release/demo-jit
fi
program=$(realpath "$DEMO_JIT_BIN")
results=$(mktemp -d)
trap 'rm -r "$results"' EXIT

# Only user code: what is in the kernel depends on the machine. The dump names the source without a folder, as none is told.
unshare --mount --uts bash -euo pipefail -s "$program" "$results" <<'END'
hostname jitscribe-demo
cp "$1" "$2/demo-jit"
mount -t tmpfs none /mnt
mkdir /mnt/jitscribe-demo
cd /mnt/jitscribe-demo
cp "$2/demo-jit" .
env -i PATH=/usr/bin:/bin perf record -q -k mono -e cpu-clock:u -F 999 --call-graph fp --no-buildid-cache -o perf.data -- \
    ./demo-jit --quiet --dump-dir . --truth truth.json
perf script -i perf.data -F ip,time --ns -G >samples.txt
mv jit-*.dump jit.dump
cp perf.data jit.dump truth.json samples.txt "$2"
END

python3 - "$results" >"$results/expected.tsv" <<'END'
import collections, json, os, sys
folder = sys.argv[1]
codes = [json.loads(line) for line in open(os.path.join(folder, "truth.json"))]
counts = collections.Counter()
for line in open(os.path.join(folder, "samples.txt")):
    words = line.split()
    if len(words) != 2:
        continue
    seconds, nanoseconds = words[0].rstrip(":").split(".")
    time, ip = int(seconds) * 10**9 + int(nanoseconds), int(words[1], 16)
    found = [code["symbol"] for code in codes if code["address"] <= ip < code["address"] + code["size"]
             and code["loaded"] <= time and (code["died"] is None or time < code["died"])]
    counts[found[0] if found else ""] += 1
for symbol, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
    print(count, symbol or "(other code)", sep="\t")
END

mkdir -p "$shipped"
cp examples/demo-jit/src/demo.scribe "$results"
for file in perf.data jit.dump demo.scribe; do
    gzip -9n <"$results/$file" >"$results/$file.gz"
    mv "$results/$file.gz" "$shipped/"
done
mv "$results/expected.tsv" "$shipped/"
ls -l "$shipped"
