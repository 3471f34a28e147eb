#!/usr/bin/env bash
# Puts perf 6.12 and Python 3.13 of Debian 13 into DIR, beside what Debian 12 has installed.
#
#   scripts/trixie.sh DIR    then: DIR/run/perf …, DIR/run/python3.13 …
#
# The packages are only unpacked, and the programs are started through their own dynamic linker: no chroot,
# nothing mounted, and the host's files stay where a recording says they are. About 10 s and 200 MB.
set -euo pipefail

if [ $# != 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)

works() {
    "$dir/run/perf" --version >/dev/null 2>&1 && "$dir/run/python3.13" -c '' >/dev/null 2>&1
}
works && exit 0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# The mirror that this machine's own packages come from has Debian 13 too.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
as_root rm -rf "$dir/root"
as_root mmdebstrap --quiet --variant=extract --mode=root --include=linux-perf,python3.13 \
    trixie "$dir/root" "$mirror"

mkdir -p "$dir/run"
lib=$dir/root/usr/lib/x86_64-linux-gnu
for program in perf python3.13; do
    cat >"$dir/run/$program" <<RUN
#!/bin/sh
# Written by scripts/trixie.sh.
export PERF_EXEC_PATH="$dir/root/usr/libexec/perf-core"
$([ $program = perf ] || echo "export PYTHONHOME=\"$dir/root/usr\"")
exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$dir/root/usr/bin/$program" "\$@"
RUN
    chmod +x "$dir/run/$program"
done
works || {
    echo "scripts/trixie.sh: the programs unpacked into $dir do not start" >&2
    exit 1
}
