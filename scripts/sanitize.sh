#!/usr/bin/env bash
# The library's threads under ThreadSanitizer, and what of it needs no system call under Miri.
#
#   scripts/sanitize.sh [tsan|miri]...      both unless told
#
# It needs rustup, and installs a nightly toolchain with the sources of the standard library, which
# ThreadSanitizer wants built with it.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

[ $# -gt 0 ] || set -- tsan miri
host=$(rustc -vV | sed -n 's/^host: //p')
rustup component add --toolchain nightly rust-src miri 2>/dev/null ||
    rustup toolchain install nightly --profile minimal --component rust-src --component miri
# Apart from what the stable toolchain builds, so that neither builds anew for the other.
target_dir=${CARGO_TARGET_DIR:-target}

for what; do
    case $what in
        tsan)
            RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" \
                JITSCRIBE_THREADS_OPS="${JITSCRIBE_THREADS_OPS:-4000}" \
                cargo +nightly test --quiet -Zbuild-std --target "$host" \
                --target-dir "$target_dir/tsan" -p jitscribe --test threads
            ;;
        miri)
            # Groups as the library writes them, with unwind tables, and as jitdump's reader finds them.
            MIRIFLAGS="-Zmiri-disable-isolation" \
                cargo +nightly miri test --quiet --target-dir "$target_dir/miri" \
                -p jitscribe --lib -- plain
            ;;
        *)
            sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
    esac
done
