#!/bin/sh
# Runs every fuzz target for SECONDS each (default 20), as many at a time as there are processors, and fails on a crash, on
# memory out of proportion, and on an input that takes too long.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]
#
# Targets named made_… make valid files and then change some of their fields; the others read any bytes.
#
# It needs the pinned toolchain and a C++ compiler, no nightly and no cargo-fuzz: the coverage that libFuzzer feeds on comes
# from flags that stable rustc takes. The layout is that of cargo-fuzz all the same, so `cargo +nightly fuzz run TARGET` works
# too.
#
# New inputs are kept in fuzz/target/corpus, out of the repository; fuzz/corpus has the seeds. A crashing input is left in
# fuzz/artifacts/TARGET. FUZZ_JOBS says how many run at a time.
set -eu
cd "$(dirname "$0")/../fuzz"

seconds=${1:-20}
[ $# -gt 0 ] && shift

host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-target}

command -v c++ >/dev/null || {
    echo "fuzz.sh: libFuzzer needs a C++ compiler: run scripts/setup.sh" >&2
    exit 1
}

# Naming the host as the target keeps the flags off build scripts and macros.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares \
-Ccodegen-units=1" \
    cargo build --release --bins --locked --target "$host"

if [ $# -eq 0 ]; then
    set -- $(sed -n 's/^path = "fuzz_targets\/\(.*\)\.rs"$/\1/p' Cargo.toml)
fi

# One target, in a shell of its own: NAME SECONDS BINARIES TARGET_DIR.
one='
name=$1 seconds=$2 binaries=$3 target_dir=$4
found="$target_dir/corpus/$name"
mkdir -p "$found" "artifacts/$name"
seeds=
[ ! -d "corpus/$name" ] || seeds="corpus/$name"
log="$target_dir/$name.log"
# Inputs have at most 64 KiB: nothing may take more than 64 MiB at once, or a gigabyte in all.
if ! "$binaries/$name" "$found" $seeds \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64 \
    -max_len=65536 -artifact_prefix="artifacts/$name/" -print_final_stats=1 \
    >"$log" 2>&1
then
    printf "%-16s failed\n" "$name"
    # From the panic on, without its backtrace; the last lines of libFuzzer name the input.
    grep -A 2 "panicked at\|an allocation of" "$log" >&2 || true
    tail -n 12 "$log" >&2
    exit 1
fi
runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "$log")
peak=$(sed -n "s/^stat::peak_rss_mb: *//p" "$log")
printf "%-16s %s runs, peak %s MB, no crash\n" "$name" "$runs" "$peak"
'
# xargs fails if one of them does; the others go on.
printf '%s\n' "$@" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I NAME \
    sh -c "$one" sh NAME "$seconds" "$target_dir/$host/release" "$target_dir"
