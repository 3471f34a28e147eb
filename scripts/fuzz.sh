#!/bin/sh
# Runs every fuzz target for SECONDS each (default 20) and fails on the first crash, huge
# allocation, or input that takes too long.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]
#
# It needs the stable toolchain and a C++ compiler, no nightly and no cargo-fuzz: the
# coverage that libFuzzer feeds on comes from flags that stable rustc takes. The layout
# is that of cargo-fuzz all the same, so `cargo +nightly fuzz run TARGET` works too.
#
# New inputs are kept in fuzz/target/corpus, out of the repository; fuzz/corpus has the
# seeds. A crashing input is left in fuzz/artifacts/TARGET.
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

for name; do
    found="$target_dir/corpus/$name"
    mkdir -p "$found" "artifacts/$name"
    log="$target_dir/$name.log"
    printf '%-16s' "$name"
    if ! "$target_dir/$host/release/$name" "$found" "corpus/$name" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
        -max_len=65536 -artifact_prefix="artifacts/$name/" -print_final_stats=1 \
        >"$log" 2>&1
    then
        echo "failed"
        # From the panic on, without its backtrace; libFuzzer's last lines name the input.
        grep -A 2 'panicked at\|an allocation of' "$log" >&2 || true
        tail -n 12 "$log" >&2
        exit 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
    echo "$runs runs, peak ${peak} MB, no crash"
done
