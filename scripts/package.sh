#!/usr/bin/env bash
# Packages every crate that is to be published, as `cargo publish` would: manifests are complete, and each package has its licences and README.
#
#   scripts/package.sh            leaves out the build of each package
#   scripts/package.sh --verify   builds each package as well, apart from the workspace
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

verify=--no-verify
[ "${1:-}" != --verify ] || verify=
mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(realpath "${CARGO_TARGET_DIR:-target}")/package-check

# Crates with `publish = false` are examples, tests, and libraries that are installed from a checkout.
published=$(cargo metadata --format-version 1 --no-deps --locked |
    python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] is None:
        print(package["name"])')
packages=()
for name in $published; do
    packages+=(-p "$name")
done
# shellcheck disable=SC2086 # empty or one word
cargo package --quiet --locked --allow-dirty $verify --target-dir "$target" "${packages[@]}"
# In a workspace of its own, so that its dependencies among the others are looked for in the registry, were they to be locked or built.
(cd crates/bindings/jitscribe-wasmtime && cargo package --quiet --allow-dirty --exclude-lockfile --no-verify --target-dir "$target")
count=0
for name in $published jitscribe-wasmtime; do
    file=$(ls "$target/package/$name"-[0-9]*.crate)
    files=$(tar -tzf "$file")
    for needed in LICENSE-MIT LICENSE-APACHE README.md Cargo.toml; do
        grep -q "^[^/]*/$needed\$" <<<"$files" || {
            echo "package.sh: $file has no $needed" >&2
            exit 1
        }
    done
    # Links to the licences of the project; the package has to have the texts.
    for licence in "MIT:Permission is hereby granted" "APACHE:Apache License"; do
        text=$(tar -xzOf "$file" --wildcards "*/LICENSE-${licence%%:*}")
        grep -q "${licence#*:}" <<<"$text" || {
            echo "package.sh: LICENSE-${licence%%:*} of $file is not the text of the licence" >&2
            exit 1
        }
    done
    count=$((count + 1))
done
rm -rf "$target"
echo "package.sh: $count crates can be published"
