#!/usr/bin/env bash
# Checks the types of the pages, and compiles them into built.js and built_difference.js, which are committed: building the crate needs no node.
# scripts/setup.sh installs the tools.
#
#   crates/tools/profile-report/page/build.sh [FOLDER]    (default: that of this script)
set -euo pipefail
out=$(realpath "${1:-$(dirname "$0")}")
cd "$(dirname "$0")"
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
node "$cache/typescript-5.9.3/bin/tsc" --project tsconfig.json
build() {
    # ASCII alone, so that no text in the script ends the element that it is in.
    "$cache/linux-x64-0.28.2/bin/esbuild" "$1" --bundle --format=iife --target=es2022 --charset=ascii \
        --minify-syntax --minify-whitespace --log-level=warning --outfile="$out/$2"
}
build main.ts built.js
build difference/main.ts built_difference.js
