#!/usr/bin/env bash
# Runs the demo's tests of debuggers with gdb 16 and lldb 19 of Debian 13, which it puts into DIR.
#
#   scripts/gdb16.sh DIR [TEST...]
#
# As scripts/trixie.sh, it unpacks the packages, and starts the programs through their own dynamic linker. Not part of
# scripts/test.sh: unpacking takes 45 s and 360 MB.
set -euo pipefail

if [ $# = 0 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
root=$dir/root
lib=$root/usr/lib/x86_64-linux-gnu
llvm=$root/usr/lib/llvm-19

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if [ ! -x "$llvm/bin/lldb" ] || [ ! -x "$root/usr/bin/gdb" ]; then
    # The mirror that this machine's own packages come from has Debian 13 too.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
    as_root rm -rf "$root"
    as_root mmdebstrap --quiet --variant=extract --mode=root --include=gdb,lldb \
        trixie "$root" "$mirror"
fi

# run NAME PROGRAM [ARGUMENT...]
run() {
    cat >"$dir/run/$1" <<RUN
#!/bin/sh
# Written by scripts/gdb16.sh.
export LLDB_DEBUGSERVER_PATH="$dir/run/lldb-server"
$([ "$1" = lldb-server ] || echo "export PYTHONHOME=\"$root/usr\"")
exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib:$llvm/lib" $(printf '"%s" ' "${@:2}") "\$@"
RUN
    chmod +x "$dir/run/$1"
}
mkdir -p "$dir/run"
# What gdb starts is the host's, and so is its Python.
run gdb "$root/usr/bin/gdb" "--data-directory=$root/usr/share/gdb" -iex "unset environment PYTHONHOME"
run lldb "$llvm/bin/lldb"
run lldb-server "$llvm/bin/lldb-server"
PATH=$dir/run:$PATH
gdb --version | head -n 1
lldb --version

cargo test --workspace --test debuggers -- "$@"
