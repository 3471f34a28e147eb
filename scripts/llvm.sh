#!/usr/bin/env bash
# Compiles the headers for LLVM against other versions of it than the installed one: those that Debian 12 has, of which only the
# headers are fetched and unpacked.
#
#   scripts/llvm.sh [VERSION]...      default: 15 16 19
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- 15 16 19
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
includes=crates/bindings/jitscribe-capi/include
for version; do
    headers=$cache/llvm-$version-headers
    if [ ! -d "$headers" ]; then
        fetched=$(mktemp -d)
        (cd "$fetched" && apt-get download -q "llvm-$version-dev")
        mkdir "$fetched/content"
        dpkg-deb --fsys-tarfile "$fetched/llvm-$version-dev"_*.deb |
            tar -x -C "$fetched/content" ./usr/include
        mkdir -p "$cache"
        mv "$fetched/content/usr/include" "$headers"
        rm -r "$fetched"
    fi
    for header in "$includes"/jitscribe/*.hpp; do
        # As users of LLVM do: its own headers are those of the system.
        c++ -std=c++17 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Werror -I "$includes" \
            -isystem "$headers/llvm-$version" -isystem "$headers/llvm-c-$version" -x c++ -include "$header" /dev/null
    done
    echo "llvm.sh: the headers compile with LLVM $version"
done
