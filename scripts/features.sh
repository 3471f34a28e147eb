#!/usr/bin/env bash
# Checks every crate that can be published with every set of its features: no error, no warning. Takes minutes.
#
#   scripts/features.sh [CRATE...]
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

# CRATE FEATURE,FEATURE... for each set, the empty one as "-".
sets=$(cargo metadata --format-version 1 --no-deps --locked | python3 -c 'import itertools, json, sys
wanted = sys.argv[1:]
for package in json.load(sys.stdin)["packages"]:
    features = [name for name in package["features"] if name != "default"]
    if package["publish"] is not None or wanted and package["name"] not in wanted:
        continue
    for count in range(len(features) + 1):
        for chosen in itertools.combinations(features, count):
            print(package["name"], ",".join(chosen) or "-")' "$@")
total=$(wc -l <<<"$sets")
number=0
while read -r crate features; do
    number=$((number + 1))
    [ ! -t 2 ] || printf '\r%d of %d: %s %s\033[K' "$number" "$total" "$crate" "$features" >&2
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/features RUSTFLAGS="-D warnings" \
        cargo check --quiet --locked -p "$crate" --no-default-features --features "${features#-}" || {
        echo "features.sh: $crate does not build with the features $features" >&2
        exit 1
    }
done <<<"$sets"
[ ! -t 2 ] || printf '\r\033[K' >&2
echo "features.sh: $total sets of features build without a warning"
