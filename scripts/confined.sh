#!/usr/bin/env bash
# Runs a command as a container with Docker's default profile would: without perf_event_open, ptrace, bpf, userfaultfd, mounts and namespaces, and with a
# read-only home. For root, /dev/shm has 64 KiB, too.
#
#   scripts/confined.sh scripts/test.sh      the first tier of the tests: they skip what is not allowed, by name, and pass
set -euo pipefail
[ $# -gt 0 ] || {
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
refusing=$(realpath "$(dirname "$0")")/../tests/privilege/src/refusing.py
calls=perf_event_open,ptrace,bpf,userfaultfd,mount,umount2,unshare,setns,pivot_root
eperm=1
# These lie in the real one.
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
export PATH=$PATH:$CARGO_HOME/bin JITSCRIBE_CONFINED=1
HOME=$(mktemp -d)
export HOME
trap 'rm -rf "$HOME"' EXIT
chmod 555 "$HOME"
confined=(python3 "$refusing" "$calls" "$eperm" "$@")
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    # Root may write where the mode forbids it.
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount sh -ec 'mount -t tmpfs -o ro none "$HOME"; mount -t tmpfs -o size=64k none /dev/shm; exec "$@"' sh "${confined[@]}"
else
    "${confined[@]}"
fi
