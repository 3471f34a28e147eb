#!/usr/bin/env bash
# Runs the tests of the headers for LLVM with other versions of it than the installed one: 16 and 19, which Debian 12 has as
# well, 22 of Debian 13, and 23 of Debian's unstable suite. With 15, of which it compiles the headers only.
#
#   scripts/llvm.sh [VERSION]...      default: 15 16 19 22 23
#
# The packages are only unpacked, into ~/.cache/jitscribe/llvm-VERSION (150 to 250 MB each). Programs that use a library of a newer
# Debian get its dynamic linker and C library too.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- 15 16 19 22 23
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
includes=crates/bindings/jitscribe-capi/include

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# unpack VERSION: what there is of it, into the cache.
unpack() {
    local version=$1 library=libllvm$1 suite=bookworm apt=() new
    case $version in
        17) suite=trixie library+=t64 ;;
        22) suite=trixie ;;
        23) suite=sid ;;
    esac
    mkdir -p "$cache"
    new=$(mktemp -d -p "$cache")
    chmod 755 "$new"
    if [ $suite != bookworm ]; then
        # The mirror that this machine's own packages come from; with settings and lists of its own.
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
        # The library with all that it needs. A mirror of the unstable suite may be old; its signature is checked all the same.
        as_root mmdebstrap --quiet --variant=extract --mode=root --aptopt='Acquire::Check-Valid-Until "false"' \
            --include="$library" $suite "$new/root" "$mirror"
        mkdir -p "$new/lists/partial" "$new/cache/archives/partial"
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$new/sources.list"
        apt=(-o Dir::Etc::sourcelist="$new/sources.list" -o Dir::Etc::sourceparts=/dev/null
            -o Dir::State::lists="$new/lists" -o Dir::Cache="$new/cache" -o APT::Sandbox::User="$(id -un)"
            -o Acquire::Check-Valid-Until=false)
        apt-get "${apt[@]}" update -q
    fi
    mkdir -p "$new/root"
    (cd "$new" && apt-get "${apt[@]}" download -q "llvm-$version-dev" "llvm-$version-runtime" "$library")
    for package in "$new"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | as_root tar -x -C "$new/root" --exclude '*.a' --keep-directory-symlink
    done
    if [ $suite != bookworm ]; then
        # Else it would look for libraries in a path of its own, and not where the program does.
        as_root patchelf --remove-rpath "$(readlink -f "$new/root/usr/lib/x86_64-linux-gnu/libLLVM-$version.so")"
    fi
    as_root rm -rf "$cache/llvm-$version"
    as_root mv "$new/root" "$cache/llvm-$version"
    rm -r "$new"
}

for version; do
    root=$cache/llvm-$version
    [ -d "$root/usr/include/llvm-$version" ] || unpack "$version"
    for header in llvm llvm_plugin; do
        # As users of LLVM do: its own headers are those of the system.
        c++ -std=c++17 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Werror -I "$includes" \
            -isystem "$root/usr/include/llvm-$version" -isystem "$root/usr/include/llvm-c-$version" \
            -x c++ -include "$includes/jitscribe/$header.hpp" /dev/null
    done
    echo "llvm.sh: the headers compile with LLVM $version"
    if [ "$version" != 15 ]; then
        JITSCRIBE_LLVM=$root cargo test --quiet --locked -p end-to-end --test live adapter_llvm::
        echo "llvm.sh: the tests pass with LLVM $version"
    fi
done
