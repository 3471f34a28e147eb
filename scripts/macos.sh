#!/usr/bin/env bash
# Builds for macOS what a runtime links, on Linux: checks it for both machines, links the shared library, and looks at it. Nothing is run, as
# there is no Mac. The C compiler and the linker are zig's, which brings the symbols of macOS' libraries (100 MB from PyPI, once).
#
#   scripts/macos.sh
#
# Set JITSCRIBE_CACHE to move zig (default: ~/.cache/jitscribe).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

fail() {
    echo "macos.sh: $*" >&2
    exit 1
}
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
zig=0.17.1
if ! "$cache/zig-$zig/bin/python3" -c 'import ziglang' 2>/dev/null; then
    requirements=$(mktemp)
    echo "ziglang==$zig --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54" >"$requirements"
    python3 -m venv "$cache/zig-$zig"
    "$cache/zig-$zig/bin/pip" install --quiet --only-binary :all: --require-hashes -r "$requirements"
    rm "$requirements"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The crate `libc` has programs link libiconv, of which zig has no symbols. Nothing uses it.
cat >"$scratch/libiconv.tbd" <<END
--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: '/usr/lib/libiconv.2.dylib'
...
END
for machine in aarch64 x86_64; do
    other=$machine-apple-darwin
    [ -d "$(rustc --print sysroot)/lib/rustlib/$other/lib" ] || fail "there is no library of Rust for $other: rustup target add $other"
    # What cc and rustc say in clang's words for Apple, zig says otherwise.
    cat >"$scratch/cc-$machine" <<END
#!/bin/bash
words=()
while [ \$# -gt 0 ]; do
    case \$1 in
        -arch) shift ;;
        -mmacosx-version-min=* | --target=*) ;;
        *) words+=("\$1") ;;
    esac
    shift
done
exec "$cache/zig-$zig/bin/python3" -m ziglang cc -target $machine-macos -L"$scratch" "\${words[@]}"
END
    chmod +x "$scratch/cc-$machine"
    export "CC_${machine}_apple_darwin=$scratch/cc-$machine" "AR_${machine}_apple_darwin=llvm-ar"
    upper=${machine^^}
    export "CARGO_TARGET_${upper}_APPLE_DARWIN_LINKER=$scratch/cc-$machine"

    # The library, with all that macOS has of it, and with nothing.
    cargo check --quiet --locked --target "$other" -p jitscribe --no-default-features
    cargo build --quiet --locked --target "$other" -p jitscribe-shared 2>"$scratch/said" || {
        cat "$scratch/said" >&2
        fail "jitscribe-shared does not build for $other"
    }
    library=${CARGO_TARGET_DIR:-target}/$other/debug/libjitscribe_shared.dylib
    # The functions of the header that macOS has, and what debuggers look for; in C's names.
    sed -n 's/^ *\(jitscribe_[a-z0-9_]*\);$/_\1/p' crates/bindings/jitscribe-capi/libjitscribe.map | grep -v '_arena_\|_allocation_\|_crash_stream' >"$scratch/expected"
    printf '%s\n' ___jit_debug_descriptor ___jit_debug_register_code >>"$scratch/expected"
    llvm-nm --extern-only --defined-only --format=just-symbols "$library" | LC_ALL=C sort >"$scratch/found"
    LC_ALL=C sort -o "$scratch/expected" "$scratch/expected"
    # zig's linker exports all else too: it ignores the list that rustc gives it.
    missing=$(LC_ALL=C comm -23 "$scratch/expected" "$scratch/found")
    [ -z "$missing" ] || fail "$library does not export" $missing
    llvm-objdump --macho --dylib-id "$library" | grep -qx '@rpath/libjitscribe.0.dylib' || fail "$library has another name"
    # Everything that it needs is macOS' own; libiconv is there because the crate `libc` says so.
    needs=$(llvm-objdump --macho --dylibs-used "$library" | sed -n 's/^\t\([^ ]*\) (.*/\1/p' | grep -v '^@rpath/libjitscribe' | sort)
    [ "$(grep -v '^/usr/lib/libiconv\.' <<<"$needs")" = /usr/lib/libSystem.B.dylib ] || fail "$library needs: $needs"
    # By open alone, samply learns of a dump; see crates/runtime/jitscribe/src/log/memory/macos.rs.
    llvm-nm --undefined-only --format=just-symbols "$library" | grep -qx _open || fail "$library does not call open"
    printf 'macos %s built\n' library c-api >"${CARGO_TARGET_DIR:-target}/macos.txt"
    echo "macos.sh: $other: the library builds, exports the $(wc -l <"$scratch/expected") symbols of the header, and needs libSystem alone (not run)"
done
