#!/usr/bin/env bash
# Runs a program that was built for Windows, in a folder of wine's own that it makes at the first run (10 s, 700 MB).
#
#   scripts/wine.sh PROGRAM.exe [ARGUMENT…]
#
# As cargo's runner: CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$PWD/scripts/wine.sh cargo test --target x86_64-pc-windows-gnu -p …
# Ends as the program does. Set JITSCRIBE_CACHE to move the folder (default: ~/.cache/jitscribe), WINEDEBUG to hear of wine.
set -euo pipefail

if [ $# = 0 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi

# Debian puts it where no PATH leads, unless the package `wine` with its launcher is there too.
wine=
for place in /usr/lib/wine/wine64 "$(command -v wine64 || true)" "$(command -v wine || true)"; do
    if [ -x "$place" ]; then
        wine=$place
        break
    fi
done
if [ -z "$wine" ]; then
    echo "$0: there is no wine64: scripts/setup.sh live installs it" >&2
    exit 127
fi

cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
export WINEPREFIX=$cache/wine WINEARCH=win64 WINEDEBUG=${WINEDEBUG:--all}
# What the first run would look for on the network or put into menus. Without it, that takes 9 s and not 80.
export WINEDLLOVERRIDES="mscoree=;mshtml=;winemenubuilder.exe=;explorer.exe="

# Where Rust's library gets random numbers since 1.78; wine has it since 9, and Debian 12 has wine 8.
random_numbers() {
    local dll=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
    [ ! -e "$dll" ] || return 0
    x86_64-w64-mingw32-gcc -x c -shared -s -o "$dll" - -ladvapi32 <<'C'
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(unsigned char *room, SIZE_T size) {
    for (SIZE_T part; size != 0; room += part, size -= part) {
        part = size < 0x10000000 ? size : 0x10000000;
        if (!RtlGenRandom(room, (ULONG)part)) return FALSE;
    }
    return TRUE;
}
C
}

# Several may come at once, and one alone makes the folder. Wine's own processes outlive it by seconds: they must not
# hold the outputs of whoever waits for this script, nor the lock.
if [ ! -e "$WINEPREFIX/made" ]; then
    mkdir -p "$cache"
    (
        flock 9
        if [ ! -e "$WINEPREFIX/made" ]; then
            timeout 300 "$wine" wineboot --init >/dev/null 2>&1 </dev/null 9>&-
            random_numbers
            touch "$WINEPREFIX/made"
        fi
    ) 9>"$cache/wine.lock"
fi

exec "$wine" "$@"
