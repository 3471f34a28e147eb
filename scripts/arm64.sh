#!/usr/bin/env bash
# Unpacks libraries and runtimes of Debian for arm64 into DIR, for programs that QEMU's user mode runs: libgcc, libunwind, LLVM's
# libunwind, node and Mono.
#
#   scripts/arm64.sh DIR    then: QEMU_LD_PREFIX=DIR qemu-aarch64 DIR/usr/bin/node …
#
# The packages are only unpacked: nothing is configured, and dpkg on this machine hears of no other architecture. About 15 s and 190 MB.
set -euo pipefail

if [ $# != 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
packages=libgcc-s1,libstdc++6,libunwind8,libunwind-14,nodejs,mono-runtime-sgen
[ "$(cat "$1/packages" 2>/dev/null)" != "$packages" ] || exit 0
mkdir -p "$(dirname "$1")"

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# The mirror that this machine's own packages come from has arm64 too.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
as_root rm -rf "$1.new"
as_root mmdebstrap --quiet --variant=extract --mode=root --architectures=arm64 --include="$packages" bookworm "$1.new" "$mirror"
# QEMU looks here before it looks at the machine's own files, so only what is for arm64 stays.
as_root find "$1.new" -mindepth 1 -maxdepth 1 ! -name lib ! -name usr ! -name etc -exec rm -rf {} +
as_root find "$1.new/etc" -mindepth 1 -maxdepth 1 ! -name mono -exec rm -rf {} +
as_root find "$1.new/usr" -mindepth 1 -maxdepth 1 ! -name bin ! -name lib ! -name share -exec rm -rf {} +
as_root find "$1.new/usr/share" -mindepth 1 -maxdepth 1 ! -name nodejs -exec rm -rf {} +
as_root find "$1.new/usr/bin" -mindepth 1 ! -name 'node*' ! -name 'mono*' -exec rm -rf {} +
echo "$packages" | as_root tee "$1.new/packages" >/dev/null
as_root rm -rf "$1"
as_root mv "$1.new" "$1"
