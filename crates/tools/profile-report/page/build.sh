#!/usr/bin/env bash
# Checks the types of the page, and compiles it into built.js, which is committed: building the crate needs no node.
# scripts/setup.sh installs the tools.
#
#   crates/tools/profile-report/page/build.sh [FILE]    (default: built.js)
set -euo pipefail
out=$(realpath "${1:-$(dirname "$0")/built.js}")
cd "$(dirname "$0")"
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
node "$cache/typescript-5.9.3/bin/tsc" --project tsconfig.json
# ASCII alone, so that no text in the script ends the element that it is in.
"$cache/linux-x64-0.28.2/bin/esbuild" main.ts --bundle --format=iife --target=es2022 --charset=ascii \
    --minify-syntax --minify-whitespace --log-level=warning --outfile="$out"
