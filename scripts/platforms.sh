#!/usr/bin/env bash
# Writes the table of docs/platforms.md from the results of the last tests: target/native.txt (scripts/test.sh), foreign.txt (scripts/foreign.sh),
# windows.txt (scripts/test.sh --all) and macos.txt (scripts/macos.sh). A line of them is a platform, a capability and a result: ok, built or FAILED.
#
#   scripts/platforms.sh            changes the page
#   scripts/platforms.sh --native   first notes that all tests passed on this machine
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
page=docs/platforms.md
# Capability, and what it means.
rows='library|announcing: the code log
library-processes|forks, kills, full disks, refused memory
c-api|programs in C
guest|threads, signals and crashes of the host
unwind-info|describing frames
unwinders|unwinding through jitted code, libgcc and LLVM'"'"'s libunwind (Windows: its own)
libunwind|the same, libunwind
arena|code in an object file (`CodeArena`)
debuggers|showing code to debuggers
valgrind-requests|showing code to Valgrind
perf-map|perf maps
jitdump|jitdumps
code-log|reading the log from outside
process-context|OpenTelemetry'"'"'s process context
images|object files for perf
objects|code written as a shared object or DLL, which the system loads
bridge|preloaded into other runtimes
bridge-signed-frames|the same, where return addresses are signed
etw|events for Windows'"'"' profilers
command|the command: record, inject, report and others'
columns='x86_64|x86-64, glibc
aarch64|AArch64, QEMU
riscv64|RISC-V, QEMU
musl|x86-64, musl
windows|Windows, wine
macos|macOS'

case ${1:-} in
    '') ;;
    --native)
        # What only another platform has is left out.
        cut -d'|' -f1 <<<"$rows" | grep -vx 'bridge-signed-frames\|etw' | sed 's/.*/x86_64 & ok/' >"$target/native.txt"
        exit
        ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac

results=$(cat "$target"/{native,foreign,windows,macos}.txt 2>/dev/null || true)
[ -n "$results" ] || {
    echo "platforms.sh: there are no results in $target: run scripts/test.sh --all" >&2
    exit 1
}
table=$(
    printf '| |'
    cut -d'|' -f2 <<<"$columns" | while read -r title; do printf ' %s |' "$title"; done
    printf '\n|---|%s\n' "$(sed 's/.*/---|/' <<<"$columns" | tr -d '\n')"
    while IFS='|' read -r capability meaning; do
        printf '| %s |' "$meaning"
        while IFS='|' read -r platform _; do
            # One failure counts more than other checks of the same that passed.
            case $(awk -v p="$platform" -v c="$capability" '$1 == p && $2 == c && r != "FAILED" { r = $3 } END { print r }' <<<"$results") in
                ok) printf ' tested |' ;;
                built) printf ' built, not run |' ;;
                '') printf ' not seen |' ;;
                *) printf ' **fails** |' ;;
            esac
        done <<<"$columns"
        printf '\n'
    done <<<"$rows"
)
awk -v table="$table" '
    /^<!-- results/ { print; print table; skip = 1; next }
    /^<!-- end of results/ { skip = 0 }
    !skip { print }
' "$page" >"$page.new"
mv "$page.new" "$page"
echo "platforms.sh: $page has the results of $(wc -l <<<"$results") checks"
