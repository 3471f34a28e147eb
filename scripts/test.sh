#!/usr/bin/env bash
# All tests, from a bare Debian 12 on: installs what is missing, and runs every test with the real tools. At the end it says
# what each step took, and which tests were skipped for want of a privilege.
#
#   scripts/test.sh          what continuous integration runs
#   scripts/test.sh --all    then also with newer versions of the debuggers, Valgrind and LLVM, in a bare Debian, for other platforms (AArch64,
#                            RISC-V, musl, Windows, macOS), with sanitizers, and every fuzz target for a short while
#
# FUZZ_SECONDS (default 10) is the time for each fuzz target. With JITSCRIBE_NO_SKIP=1, a missing privilege is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
    '') all= ;;
    --all) all=yes ;;
    *)
        sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
PATH=$PATH:$HOME/.cargo/bin
# Everything is built once, from nothing: what speeds up later builds would only cost time and space.
export CARGO_INCREMENTAL=0

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Tests that cannot run add a line to it; see tests/privilege.
export JITSCRIBE_SKIPPED=$scratch/skipped
: >"$JITSCRIBE_SKIPPED"

# What the build directory's disk has left, in MB. A linker that finds it full dies of a bus error, and says nothing of disks.
free() {
    df --output=avail -BM "$target" | tail -n 1 | tr -dc 0-9
}
mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(realpath "${CARGO_TARGET_DIR:-target}")
needed=12000
if [ "$(free)" -lt $needed ]; then
    echo "scripts/test.sh: warning: $(free) MB are free for $target, and all tests need about $needed; CARGO_TARGET_DIR moves it" >&2
fi

steps=()
step() {
    steps+=("$SECONDS $1")
    printf '\n== %s (%d s so far, %d MB of disk free)\n' "$1" "$SECONDS" "$(free)"
}

step "what the tests need"
scripts/setup.sh test

step "building the tests"
# With the library that programs preload, which no test links. Built apart, it and what it needs would have fewer features.
# The program that asks tables is built beside: much of it is one crate after the other, for which one processor is enough.
(cd fleet && exec cargo build --quiet --locked --target-dir "$target/fleet") &
fleet=$!
cargo build --quiet --workspace --locked --lib --bins --tests --examples
wait "$fleet"

step "tests"
built=$target/debug
export JITSCRIBE_PRELOAD=$built/libjitscribe_preload.so JITSCRIBE_BIN=$built/jitscribe DEMO_JIT_BIN=$built/demo-jit \
    JITSCRIBE_FLEET_BIN=$target/fleet/debug/jitscribe-fleet
# The tests wait much of the time for what they record. This runs beside them, in the time that they leave.
cat >"$scratch/beside.sh" <<END
set -euo pipefail
(cd fleet && cargo test --quiet --locked --target-dir "$target/fleet")
scripts/test-packages.sh --here "$built"
scripts/adopters.sh libtcc asmjit rbpf
scripts/foreign.sh --quick
END
nice -n 19 bash "$scratch/beside.sh" >"$scratch/beside" 2>&1 &
beside=$!
# What was built with them. Else the end-to-end tests build these programs by themselves, for which dependencies have
# fewer features: Cranelift would be compiled once more.
tests=passed
cargo test --quiet --workspace --locked --no-fail-fast || tests=failed
step "fleet, packages, adopters and AArch64, which began beside the tests"
wait "$beside" || tests=failed
cat "$scratch/beside"
[ $tests = passed ]
scripts/platforms.sh --native

# With newer versions of tools, for another system, with other compilers, and with random input: for more than CI's time.
if [ -n "$all" ]; then
    step "gdb 16 and lldb 19"
    cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
    PATH=$cache/trixie/run:$PATH cargo test --quiet --workspace --locked --no-fail-fast --test debuggers

    step "Valgrind 3.24"
    PATH=$cache/trixie/run:$PATH cargo test --quiet --workspace --locked --no-fail-fast --test callgrind_exact --test valgrind_exact --test valgrind_record
    PATH=$cache/trixie/run:$PATH cargo test --quiet --locked -p publish-valgrind --test tools

    step "LLVM 15 to 23"
    scripts/llvm.sh

    step "other adopters"
    scripts/adopters.sh inkwell luajit components

    step "packages in a bare Debian"
    scripts/test-packages.sh "$built"

    step "macOS"
    scripts/macos.sh

    step "AArch64, RISC-V and musl"
    scripts/foreign.sh

    step "Windows"
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$PWD/scripts/wine.sh
    cargo test --quiet --locked --target x86_64-pc-windows-gnu --no-fail-fast -p unwind-info -p publish-unwind -p publish-etw
    cargo test --quiet --locked --target x86_64-pc-windows-gnu --no-fail-fast -p jitscribe --features etw --lib --test windows
    cargo build --quiet --locked --target x86_64-pc-windows-gnu -p jitscribe-capi -p jitscribe-shared
    # The DLLs are among the tests of this machine, which have passed.
    printf 'windows %s\n' 'library ok' 'unwind-info ok' 'unwinders ok' 'etw ok' 'objects ok' 'c-api built' >"$target/windows.txt"

    step "sanitizers"
    scripts/sanitize.sh

    step "fuzz targets"
    scripts/fuzz.sh "${FUZZ_SECONDS:-10}"
fi

[ -z "$all" ] || scripts/platforms.sh
printf '\n'
steps+=("$SECONDS ")
for ((n = 0; n + 1 < ${#steps[@]}; n++)); do
    printf '%6d s  %s\n' $((${steps[n + 1]%% *} - ${steps[n]%% *})) "${steps[n]#* }"
done
skipped=$(wc -l <"$JITSCRIBE_SKIPPED")
if [ "$skipped" != 0 ]; then
    printf '\nscripts/test.sh: %d skipped, all others passed in %d s\n' "$skipped" "$SECONDS"
    sort "$JITSCRIBE_SKIPPED"
else
    printf '\nscripts/test.sh: all passed in %d s, nothing skipped\n' "$SECONDS"
fi
