#!/usr/bin/env bash
# The tests, in three tiers. Each installs what it needs on Debian 12, and says at its end what ran, how long each step took, what was
# skipped and why, and what the next tier adds.
#
#   scripts/test.sh          unit, property, corpus, conformance, command-line, in-process and hostile tests, and a live recording with each of
#                            perf, gdb, Valgrind and node; needs these tools, Rust, a C++ compiler and Python
#   scripts/test.sh --live   the second tier alone: other runtimes, debuggers, viewers, engines, browsers, packages
#   scripts/test.sh --all    both, then newer versions of the tools, other platforms (AArch64, RISC-V, musl, Windows, macOS), sanitizers, and
#                            every fuzz target for a short while
#
# FUZZ_SECONDS (default 10) is the time for each fuzz target. With JITSCRIBE_NO_SKIP=1, a missing privilege is a failure.
# TEST_THREADS is how many tests run at a time (default: twice the processors, as tests of recorders sleep).
set -euo pipefail
cd "$(dirname "$0")/.."
first=yes live= all=
case ${1:-} in
    '') ;;
    --live) first= live=yes ;;
    --all) live=yes all=yes ;;
    *)
        sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
PATH=$PATH:$HOME/.cargo/bin
# Everything is built once, from nothing: what speeds up later builds would only cost time and space.
export CARGO_INCREMENTAL=0
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}

scratch=$(mktemp -d)
beside=
# What still runs beside must not outlive this script.
cleanup() {
    # shellcheck disable=SC2086 # several ids
    [ -z "$beside" ] || kill $beside 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT
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
built=$target/debug

steps=()
step() {
    steps+=("$SECONDS $1")
    printf '\n== %s (%d s so far, %d MB of disk free)\n' "$1" "$SECONDS" "$(free)"
}

# Tests of the second tier are in programs named `live`, and in modules named `live` of libraries and of their integration tests.
second='binary(live) or ((binary(it) or kind(lib)) and test(/(^|::)live::/))'
# These compare with tools of the second tier where they are installed, and so run again there.
again='binary(corpus) or (binary(smoke) and test(/^demo::/)) or (package(code-image) and test(/^(inlined|symfile)::/)) or (package(jitscribe-cli) and test(/^agent_images::/))'
# The adapter for wasmtime is a workspace of its own.
wasmtime=crates/bindings/jitscribe-wasmtime
# One selection for both tiers: with another one, dependencies would have other features and be compiled once more.
packages=(--workspace --exclude benches)
# Programs with a `main` of their own, each of whose tests is a process.
processes=(--test processes --test refused --test vtune --test crashes --test collectors)
threads=${TEST_THREADS:-$((2 * $(nproc)))}
failed=0

# Notes a failure, and continues with the next step.
try() {
    "$@" || {
        failed=$((failed + 1))
        echo "scripts/test.sh: FAILED: $*" >&2
    }
}

# Runs the tests of a tier by cargo-nextest, or by cargo if it is not installed.
# Live tests that fail are run once more; more than two such tests are a failure.
run_tests() {
    local cargo=(cargo test --quiet --locked --no-fail-fast)
    if cargo nextest --version >/dev/null 2>&1; then
        case $1 in
            first) try nextest "${packages[@]}" -E "not ($second)" ;;
            second) try nextest "${packages[@]}" --lib --test it --test live --test corpus --test smoke -E "$second or $again" ;;
        esac
    elif [ "$1" = first ]; then
        # Not --bins, which has programs without tests run as well.
        try "${cargo[@]}" "${packages[@]}" --lib -- --test-threads "$threads" --skip live::
        try "${cargo[@]}" "${packages[@]}" --bin jitscribe --bin demo-jit --bin bf-jit -- --test-threads "$threads"
        # Cargo runs one program after the other. This one, which takes long, runs beside them.
        "${cargo[@]}" "${packages[@]}" --test hostile -- --test-threads "$threads" >"$scratch/hostile" 2>&1 &
        local hostile=$!
        beside="$beside $hostile"
        try "${cargo[@]}" "${packages[@]}" --test rules --test corpus --test smoke -- --test-threads "$threads"
        try "${cargo[@]}" "${packages[@]}" --test it -- --test-threads "$threads" --skip live::
        try wait "$hostile"
        beside=${beside% "$hostile"}
        cat "$scratch/hostile"
    else
        try "${cargo[@]}" "${packages[@]}" --lib --test it -- --test-threads "$threads" live::
        try "${cargo[@]}" "${packages[@]}" --test live --test corpus -- --test-threads "$threads"
        try "${cargo[@]}" -p end-to-end --test smoke -- --test-threads "$threads" demo::
    fi
}

nextest() {
    local log=$scratch/nextest repeated
    cargo nextest run --locked --no-fail-fast --hide-progress-bar --test-threads "$threads" "$@" 2>&1 | tee "$log" || return 1
    repeated=$(grep -c '^ *FLAKY' "$log" || true)
    [ "$repeated" -le 2 ] || {
        echo "scripts/test.sh: $repeated live tests passed only when they were run again; two are allowed" >&2
        return 1
    }
}

# The programs that tests start. Else the end-to-end tests build them by themselves, for which dependencies have fewer features.
export JITSCRIBE_PRELOAD=$built/libjitscribe_preload.so JITSCRIBE_SHARED=$built/libjitscribe_shared.so JITSCRIBE_BIN=$built/jitscribe DEMO_JIT_BIN=$built/demo-jit \
    JITSCRIBE_FLEET_BIN=$target/fleet/debug/jitscribe-fleet

if [ -n "$first" ]; then
    step "setup"
    scripts/setup.sh test

    step "build"
    scripts/built-crates.sh restore . "$target" || true
    cargo build --quiet "${packages[@]}" --locked --lib --bins --tests --examples
    scripts/built-crates.sh save . "$target" || true

    # Killed, forked and starved processes: most of their time is spent waiting, so they run beside the other tests.
    cat >"$scratch/processes.sh" <<END
set -euo pipefail
cargo test --quiet --locked --no-fail-fast ${packages[*]} ${processes[*]}
cargo test --quiet --locked -p publish-valgrind --test tools
END
    step "tests"
    bash "$scratch/processes.sh" >"$scratch/processes" 2>&1 &
    beside=$!
    run_tests first

    step "tests that are processes, which began beside the others"
    try wait "$beside"
    beside=
    cat "$scratch/processes"

    # scripts/confined.sh does not change what these do.
    if [ -z "${JITSCRIBE_CONFINED:-}" ]; then
        step "examples in the documentation"
        try cargo test --quiet --locked "${packages[@]}" --doc
    fi
fi

if [ -n "$live" ]; then
    step "setup of the second tier"
    scripts/setup.sh live

    step "build of the second tier"
    # `fleet` is built beside: much of it is one crate after the other, for which one processor is enough.
    scripts/built-crates.sh restore fleet "$target/fleet" || true
    scripts/built-crates.sh restore "$wasmtime" "$target/wasmtime" || true
    (cd fleet && exec cargo build --quiet --locked --target-dir "$target/fleet") &
    fleet=$!
    cargo build --quiet "${packages[@]}" --locked --lib --bins --tests --examples
    # Left out by `--tests`.
    cargo build --quiet "${packages[@]}" --locked --test live
    (cd "$wasmtime" && cargo build --quiet --locked --tests --target-dir "$target/wasmtime")
    wait "$fleet"
    scripts/built-crates.sh save fleet "$target/fleet" || true
    scripts/built-crates.sh save "$wasmtime" "$target/wasmtime" || true

    of_wasmtime="cargo test --quiet"
    if cargo nextest --version >/dev/null 2>&1; then
        of_wasmtime="cargo nextest run --config-file '$PWD/.config/nextest.toml' --hide-progress-bar"
    fi
    # The tests wait much of the time for what they record. This runs beside them, in the time that they leave.
    cat >"$scratch/beside.sh" <<END
set -euo pipefail
(cd fleet && cargo test --quiet --locked --target-dir "$target/fleet")
(cd $wasmtime && $of_wasmtime --locked --target-dir "$target/wasmtime")
scripts/test-packages.sh --here "$built"
scripts/adopters.sh libtcc asmjit xbyak gccjit rbpf
scripts/foreign.sh --quick
END
    nice -n 19 bash "$scratch/beside.sh" >"$scratch/beside" 2>&1 &
    beside=$!

    step "tests of the second tier"
    run_tests second
    try cargo test --quiet --locked -p code-arena --test tools

    step "fleet, wasmtime, packages, adopters and AArch64, which began beside the tests"
    try wait "$beside"
    beside=
    cat "$scratch/beside"
    [ "$failed" != 0 ] || scripts/platforms.sh --native
fi

if [ "$failed" != 0 ]; then
    printf '\nscripts/test.sh: %d steps FAILED; see above\n' "$failed" >&2
    exit 1
fi

# With newer versions of tools, for another system, with other compilers, and with random input: for more than CI's time.
if [ -n "$all" ]; then
    newer=$cache/trixie/run
    step "gdb 16 and lldb 19"
    PATH=$newer:$PATH cargo test --quiet --locked -p demo-jit --test it debuggers::

    step "Valgrind 3.24"
    PATH=$newer:$PATH cargo test --quiet --locked -p end-to-end --test live valgrind_
    PATH=$newer:$PATH cargo test --quiet --locked -p end-to-end --test live callgrind_exact::
    PATH=$newer:$PATH cargo test --quiet --locked -p publish-valgrind --test tools

    step "LLVM 15 to 23"
    scripts/llvm.sh

    step "other adopters"
    scripts/adopters.sh inkwell iced sljit ubpf mir luau oaknut luajit components

    step "packages in a bare Debian"
    scripts/test-packages.sh "$built"

    step "macOS"
    scripts/macos.sh

    step "AArch64, RISC-V and musl"
    scripts/foreign.sh

    step "Windows"
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$PWD/scripts/wine.sh
    cargo test --quiet --locked --target x86_64-pc-windows-gnu --no-fail-fast -p unwind-info -p publish-unwind -p publish-etw
    cargo test --quiet --locked --target x86_64-pc-windows-gnu --no-fail-fast -p jitscribe --features etw --lib --test it windows::
    cargo build --quiet --locked --target x86_64-pc-windows-gnu -p jitscribe-capi -p jitscribe-shared
    # The DLLs are among the tests of this machine, which have passed.
    printf 'windows %s\n' 'library ok' 'unwind-info ok' 'unwinders ok' 'etw ok' 'objects ok' 'c-api built' >"$target/windows.txt"

    step "sanitizers"
    scripts/sanitize.sh

    step "fuzz targets"
    scripts/fuzz.sh "${FUZZ_SECONDS:-10}"

    scripts/platforms.sh
fi

printf '\n'
steps+=("$SECONDS ")
for ((n = 0; n + 1 < ${#steps[@]}; n++)); do
    printf '%6d s  %s\n' $((${steps[n + 1]%% *} - ${steps[n]%% *})) "${steps[n]#* }"
done
skipped=$(wc -l <"$JITSCRIBE_SKIPPED")
if [ "$skipped" != 0 ]; then
    printf '\nscripts/test.sh %s: %d skipped, all others passed in %d s\n' "${1:-}" "$skipped" "$SECONDS"
    sort "$JITSCRIBE_SKIPPED"
else
    printf '\nscripts/test.sh %s: all passed in %d s, nothing skipped\n' "${1:-}" "$SECONDS"
fi
case ${1:-} in
    '') echo "next: scripts/test.sh --live adds the other runtimes, debuggers, viewers, engines, browsers and packages" ;;
    --live) echo "next: scripts/test.sh --all adds other versions of the tools, other platforms, sanitizers and fuzz targets" ;;
esac
