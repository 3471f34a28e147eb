#!/usr/bin/env bash
# Licences, bans and sources of all dependencies by cargo-deny (deny.toml), and known vulnerabilities, if the database of
# advisories can be reached: else that is left out by name.
#
#   scripts/deny.sh [--install]    --install builds cargo-deny if it is missing, which takes some minutes
#
# Without cargo-deny, the test `dependencies` does the same for licences, bans and sources; it is part of the ordinary tests.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

if [ "${1:-}" = --install ] && ! cargo deny --version >/dev/null 2>&1; then
    cargo install --locked cargo-deny
fi
if ! cargo deny --version >/dev/null 2>&1; then
    echo "deny.sh: left out: cargo-deny is not installed (scripts/deny.sh --install), so no advisories;"
    echo "         licences, bans and sources are checked by: cargo test -p end-to-end --test rules dependencies::"
    exit 0
fi
cargo deny --all-features check licenses bans sources
for workspace in fuzz fleet crates/bindings/jitscribe-wasmtime; do
    (cd $workspace && cargo deny --all-features --config "$OLDPWD/deny.toml" check licenses bans sources)
done
if cargo deny fetch db; then
    cargo deny --all-features check advisories
else
    echo "deny.sh: left out: advisories, as their database cannot be reached"
fi
