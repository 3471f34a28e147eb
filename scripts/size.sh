#!/usr/bin/env bash
# What the library for C takes, for sets of its features: bytes, seconds of a cold build, crates.
#
#   scripts/size.sh                      prints the table of docs/packages.md
#   scripts/size.sh --check              the same, and fails if a library is larger than it may be, or contains what it must not
#   scripts/size.sh [--check] FEATURES…  of these sets alone: log, gdb, default, all
#
# Columns: what a C program (examples/c/tinyjit.c) gains by linking the static library, beside functions that do nothing; the shared library
# as it is installed; all files as they are installed, without and with debug info; seconds to build and install in an empty folder with all
# processors; crates from the registry that are linked.
#
# The bytes depend on the versions of Rust and of the C compiler, the seconds on the machine; only bytes, crates and symbols are checked.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin
export LC_ALL=C

check=
sets=()
while [ $# -gt 0 ]; do
    case $1 in
        --check) check=yes ;;
        log | gdb | default | all) sets+=("$1") ;;
        *)
            sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
    esac
    shift
done
[ ${#sets[@]} -gt 0 ] || sets=(log gdb default all)

# Features, most kilobytes of a program and of the shared library, most crates.
of() {
    case $1 in
        log) echo "- 222 258 6" ;;
        gdb) echo "gdb 390 430 6" ;;
        default) echo "arena,gdb,perf-map,unwinders,valgrind,vtune 695 780 6" ;;
        all) echo "arena,gdb,objects,perf-map,unwinders,valgrind,vtune 700 1020 11" ;;
    esac
}
fail() {
    echo "size.sh: $*" >&2
    failed=yes
}
bytes() {
    stat -L -c %s "$1"
}

capi=crates/bindings/jitscribe-capi
failed=
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The program without the library: its functions do nothing.
compiler=(cc -std=c11 -O2 -ffunction-sections -fdata-sections)
"${compiler[@]}" -I $capi/include -c -o "$scratch/program.o" $capi/examples/c/tinyjit.c
nm --undefined-only "$scratch/program.o" | sed -n 's/^ *U \(jitscribe_.*\)/int \1(void) { return 0; }/p' >"$scratch/nothing.c"
[ -s "$scratch/nothing.c" ] || fail "the program calls nothing of the library"
cc -s -Wl,--gc-sections -o "$scratch/without" "$scratch/program.o" -O2 "$scratch/nothing.c"

# Symbols that the library must not have.
has_not() {
    local name=$1 file=$2
    readelf --symbols --wide "$file" >"$scratch/symbols"
    # Backtraces: what reads debug info, compressed sections and names.
    if grep -E '5gimli4read4line|9addr2line4line|11miniz_oxide7inflate' "$scratch/symbols"; then
        fail "$name: std's backtraces are linked"
    fi
    # What ends the process. `abort` is Rust's: a panic within a panic, or memory that its standard library cannot have.
    if awk '$7 == "UND" { print $8 }' "$scratch/symbols" | grep -xE 'exit|_exit|_Exit|quick_exit|raise|kill|tgkill|__assert_fail|longjmp'; then
        fail "$name: a function that ends the process is linked"
    fi
    # Panics are caught at all.
    grep -q rust_eh_personality "$scratch/symbols" || fail "$name: panics are not caught"
}

echo '| Features | a C program gains | `libjitscribe.so` | installed | with debug info | build | crates |'
echo '|---|---|---|---|---|---|---|'
for name in "${sets[@]}"; do
    read -r features most_program most_shared most_crates <<<"$(of "$name")"
    rm -rf "$scratch/target" "$scratch/installed"
    began=$(date +%s)
    CARGO_TARGET_DIR=$scratch/target make --silent -C $capi install FEATURES="${features#-}" PREFIX="$scratch/installed" >&2
    seconds=$(($(date +%s) - began))
    lib=$scratch/installed/lib
    # shellcheck disable=SC2046 # words
    cc -s -Wl,--gc-sections -o "$scratch/with" "$scratch/program.o" "$lib/libjitscribe.a" $(sed -n 's/^Libs.private: //p' "$lib/pkgconfig/jitscribe.pc")
    program=$(($(bytes "$scratch/with") - $(bytes "$scratch/without")))
    shared=$(bytes "$lib/libjitscribe.so")
    debug=$(du -sb "$scratch/installed" | cut -f1)
    installed=$((debug - $(du -sb "$lib/.debug" | cut -f1)))
    crates=$(cargo tree --locked --package jitscribe-capi --edges normal --no-default-features --features "${features#-}" --prefix none |
        grep -v '(/' | cut -d' ' -f1,2 | sort -u | wc -l)
    kb() { echo "$((($1 + 500) / 1000)) kB"; }
    echo "| $name | $(kb "$program") | $(kb "$shared") | $(kb "$installed") | $(kb "$debug") | $seconds s | $crates |"
    if [ -n "$check" ]; then
        [ "$program" -le $((most_program * 1000)) ] || fail "$name: a program gains $program bytes, more than $most_program kB"
        [ "$shared" -le $((most_shared * 1000)) ] || fail "$name: the shared library has $shared bytes, more than $most_shared kB"
        [ "$crates" -le "$most_crates" ] || fail "$name: $crates crates are linked, more than $most_crates"
        has_not "$name" "$lib/libjitscribe.a"
    fi
done
[ -z "$failed" ]
