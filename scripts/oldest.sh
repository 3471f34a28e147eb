#!/usr/bin/env bash
# Builds what runtimes link with the oldest Rust that its manifests promise (`rust-version`), which it installs. Edition 2024 with let chains
# needs 1.88. The other crates promise the pinned version of rust-toolchain.toml.
#
#   scripts/oldest.sh
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

command -v rustup >/dev/null || {
    echo "oldest.sh: there is no rustup to install an older Rust with: run scripts/setup.sh test" >&2
    exit 1
}
# VERSION PACKAGE, for each crate of the workspace that is used by others than its own tests.
promised=$(cargo metadata --format-version 1 --no-deps --locked |
    python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    if "/crates/" in package["manifest_path"]:
        print(package["rust_version"], package["name"])')
pinned=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
for version in $(cut -d" " -f1 <<<"$promised" | sort -uV); do
    toolchain=$version.0
    # What every build here uses.
    [ "$toolchain" != "$pinned" ] || continue
    rustup run "$toolchain" rustc --version >/dev/null 2>&1 ||
        rustup toolchain install "$toolchain" --profile minimal --no-self-update
    packages=()
    while read -r name; do
        packages+=(-p "$name")
    done < <(sed -n "s/^$version //p" <<<"$promised")
    # Apart from what the pinned one builds.
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/oldest RUSTUP_TOOLCHAIN=$toolchain \
        cargo check --quiet --locked --all-features "${packages[@]}"
    echo "oldest.sh: Rust $toolchain builds $((${#packages[@]} / 2)) crates"
done
