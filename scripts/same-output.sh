#!/usr/bin/env bash
# Compares what two versions of `jitscribe inject` make of every recording in tests/corpus: the recording, its images, and
# the report, byte for byte. For changes that must not change the output.
#
#   scripts/same-output.sh OLD NEW    both are commands `jitscribe`
#
# Prints a line for each recording, and fails if any differs.
set -euo pipefail

if [ $# -ne 2 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
old=$(realpath "$1")
new=$(realpath "$2")
cd "$(dirname "$0")/../tests/corpus"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for archive in *.tar.xz; do
    tar xJf "$archive" -C "$scratch"
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
        "$command" inject --json -i "$name" -o "$out/file.data" --image-dir "$out/images" \
            >"$out/report" 2>&1 || echo "exit $?" >>"$out/report"
        "$command" inject -i - -o - --aux-dir . --image-dir "$out/images-of-stream" \
            <"$name" >"$out/stream.data" 2>>"$out/report" || echo "exit $?" >>"$out/report"
    )
    mv "$out" "$into"
}

count=0 different=0
while read -r recording; do
    rm -rf one two
    inject "$old" "$recording" "$scratch/one"
    inject "$new" "$recording" "$scratch/two"
    count=$((count + 1))
    if diff -r one two >differences 2>&1; then
        printf 'same       %s\n' "$recording"
    else
        different=$((different + 1))
        printf 'DIFFERENT  %s\n' "$recording"
        head -n 5 differences
    fi
done < <(find . -name '*.data' | sort)
printf '%d recordings, %d with different output\n' "$count" "$different"
[ "$count" -gt 0 ] && [ "$different" = 0 ]
