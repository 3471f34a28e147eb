#!/usr/bin/env bash
# Compares what two versions of `jitscribe inject` make of every recording in tests/corpus: the recording, its images, and
# the report as JSON, byte for byte. For changes that must not change the output. Messages may be worded differently.
#
#   scripts/same-output.sh OLD NEW [RECORDINGS]…    both are commands `jitscribe`; the recordings are names in tests/corpus (default: all)
#
# Prints a line for each recording, and fails if any output differs.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
old=$(realpath "$1")
new=$(realpath "$2")
shift 2
cd "$(dirname "$0")/../tests/corpus"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ $# = 0 ]; then set -- *.tar.xz; fi
for archive in "$@"; do
    tar xJf "${archive%.tar.xz}.tar.xz" -C "$scratch"
done
cd "$scratch"

# Runs `$1 inject` with further options on the recording $2, as a file and as a stream, in the recording's folder. Leaves
# everything that was made in $3, under the same names for both versions.
inject() {
    local command=$1 recording=$2 into=$3
    # Paths are part of the output, so both versions write to the same place.
    local out=$scratch/out
    mkdir "$out"
    (
        cd "$(dirname "$recording")"
        name=$(basename "$recording")
        "$command" inject --json -i "$name" -o "$out/file.data" --aux-dir . --image-dir "$out/images" \
            >"$out/report.json" 2>"$out.messages" || echo "exit $?" >>"$out/report.json"
        "$command" inject -i - -o - --aux-dir . --image-dir "$out/images-of-stream" \
            <"$name" >"$out/stream.data" 2>>"$out.messages" || echo "exit $?" >>"$out/report.json"
    )
    # Warnings, the last item of the report, are messages.
    sed -n '/^  "warnings"/,$p' "$out/report.json" >>"$out.messages"
    sed -i '/^  "warnings"/,$d' "$out/report.json"
    mv "$out" "$into"
    mv "$out.messages" "$into.messages"
}

count=0 different=0
while read -r recording; do
    rm -rf one two
    inject "$old" "$recording" "$scratch/one"
    inject "$new" "$recording" "$scratch/two"
    count=$((count + 1))
    if diff -r one two >differences 2>&1; then
        words=same
        cmp -s one.messages two.messages || words='same, other messages'
        printf '%-20s  %s\n' "$words" "$recording"
    else
        different=$((different + 1))
        printf 'DIFFERENT             %s\n' "$recording"
        head -n 5 differences
    fi
done < <(find . -name '*.data' | sort)
printf '%d recordings, %d with different output\n' "$count" "$different"
[ "$count" -gt 0 ] && [ "$different" = 0 ]
