#!/usr/bin/env bash
# Puts Python 3.14 of Debian sid into DIR: DIR/run/python3.14. What sid has changes, so this says what it could not do, and never fails: tests of it are skipped by
# name then.
#
#   scripts/sid.sh DIR
#
# The packages are only unpacked, as scripts/trixie.sh does it. About 20 s and 150 MB.
set -uo pipefail

if [ $# != 1 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)

works() {
    "$dir/run/python3.14" -c 'import sys, sysconfig; sys.exit(sys.version_info[:2] != (3, 14))' >/dev/null 2>&1
}
works && exit 0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# The mirror that this machine's own packages come from has sid too.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
as_root rm -rf "$dir/new"
if ! as_root mmdebstrap --quiet --variant=extract --mode=root --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=python3.14-minimal,libpython3.14-stdlib sid "$dir/new" "$mirror"; then
    echo "scripts/sid.sh: left out: Python 3.14 of Debian sid cannot be unpacked, see above"
    exit 0
fi
as_root rm -rf "$dir/root"
as_root mv "$dir/new" "$dir/root"

lib=$dir/root/usr/lib/x86_64-linux-gnu
mkdir -p "$dir/run"
cat >"$dir/run/python3.14" <<RUN
#!/bin/sh
# Written by scripts/sid.sh. Started by its own dynamic linker, it takes that for the interpreter, and would not find its library.
export PYTHONHOME="$dir/root/usr"
exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$dir/root/usr/bin/python3.14" "\$@"
RUN
chmod +x "$dir/run/python3.14"
works || echo "scripts/sid.sh: left out: the Python 3.14 unpacked into $dir does not start"
exit 0
