#!/usr/bin/env bash
# Builds with the newest stable Rust, which is another than the pinned one of rust-toolchain.toml, and warns by name of what
# fails: it never fails itself, as a release of Rust must not stop anybody's work. A step of .ci/run.
#
#   scripts/newest.sh            the newest that is installed
#   scripts/newest.sh --fetch    the newest that there is: installs it beside the others, if it can be reached
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

leave_out() {
    echo "newest.sh: left out: $1"
    exit 0
}
command -v rustup >/dev/null || leave_out "there is no rustup, so no other toolchain"
pinned=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)

if [ "${1:-}" = --fetch ]; then
    # By its number: a toolchain that is called "stable" stays what it is.
    there=$(rustup check 2>/dev/null | sed -n 's/^stable-.*\(-> \|: \)\([0-9]*\.[0-9]*\.[0-9]*\) .*/\2/p' | head -n 1)
    if [ -z "$there" ]; then
        echo "newest.sh: what is newest cannot be found out, so the newest that is installed is taken"
    elif ! rustup run "$there" rustc --version >/dev/null 2>&1; then
        rustup toolchain install "$there" --profile minimal --no-self-update ||
            echo "newest.sh: Rust $there cannot be installed, so the newest that is installed is taken"
    fi
fi

# VERSION TOOLCHAIN of all stable ones that are installed, the newest last.
newest=$(rustup toolchain list | sed 's/ .*//' | while read -r name; do
    version=$(rustup run "$name" rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\) .*/\1/p')
    [ -z "$version" ] || echo "$version $name"
done | sort -V | tail -n 1)
version=${newest%% *}
if [ -z "$version" ] || [ "$(printf '%s\n%s\n' "$version" "$pinned" | sort -V | tail -n 1)" = "$pinned" ]; then
    leave_out "no toolchain newer than the pinned $pinned is installed (rustup toolchain install VERSION)"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Apart from what the pinned one builds.
if RUSTUP_TOOLCHAIN=${newest#* } CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/newest \
    cargo build --workspace --locked --message-format short >"$log" 2>&1; then
    warnings=$(grep -c ': warning: ' "$log")
    echo "newest.sh: Rust $version builds it, with $warnings warnings"
    grep ': warning: ' "$log"
else
    echo "newest.sh: WARNING: Rust $version does not build it:"
    grep -E '^error|: error' "$log"
fi
exit 0
