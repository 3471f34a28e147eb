#!/usr/bin/env bash
# The library's threads under ThreadSanitizer, and what of it needs no system call under Miri.
#
#   scripts/sanitize.sh [tsan|miri]...      both unless told
#
# It needs rustup and a nightly toolchain with Miri and the sources of the standard library, which ThreadSanitizer wants built
# with it. JITSCRIBE_NIGHTLY names the toolchain. Where it is not there and cannot be installed, the installed "nightly" does;
# without one that has what is needed, both are skipped, which is said and counted as for tests (see tests/privilege).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

[ $# -gt 0 ] || set -- tsan miri
for what; do
    case $what in
        tsan | miri) ;;
        *)
            sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
    esac
done

# Of one day, as a newer one may not build this.
wanted=${JITSCRIBE_NIGHTLY:-nightly-2026-10-30}
sysroot_has() {
    local sysroot
    sysroot=$(rustup run "$1" rustc --print sysroot 2>/dev/null) && [ -d "$sysroot/lib/rustlib/src/rust/library" ] &&
        [ -x "$sysroot/bin/cargo-miri" ]
}
nightly=
if command -v rustup >/dev/null; then
    sysroot_has "$wanted" ||
        rustup toolchain install "$wanted" --profile minimal --component rust-src --component miri --no-self-update || true
    for toolchain in "$wanted" nightly; do
        if [ -z "$nightly" ] && sysroot_has "$toolchain"; then nightly=$toolchain; fi
    done
fi
if [ -z "$nightly" ]; then
    line="skipped: needs a nightly toolchain with rust-src and miri ($wanted cannot be installed): scripts/sanitize.sh $*"
    echo "$line" >&2
    [ -z "${JITSCRIBE_NO_SKIP:-}" ] || exit 1
    [ -z "${JITSCRIBE_SKIPPED:-}" ] || echo "$line" >>"$JITSCRIBE_SKIPPED"
    exit 0
fi

host=$(rustc -vV | sed -n 's/^host: //p')
# Apart from what the pinned toolchain builds, so that neither builds anew for the other.
target_dir=${CARGO_TARGET_DIR:-target}
export RUSTUP_TOOLCHAIN=$nightly

for what; do
    case $what in
        tsan)
            RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" \
                JITSCRIBE_THREADS_OPS="${JITSCRIBE_THREADS_OPS:-4000}" \
                cargo test --quiet --locked -Zbuild-std --target "$host" \
                --target-dir "$target_dir/tsan" -p jitscribe --test it threads::
            ;;
        miri)
            # Groups as the library writes them, with unwind tables, and as jitdump's reader finds them.
            MIRIFLAGS="-Zmiri-disable-isolation" \
                cargo miri test --quiet --locked --target-dir "$target_dir/miri" \
                -p jitscribe --lib -- plain
            ;;
    esac
done
