#!/usr/bin/env bash
# Builds and runs tests for other machines than x86-64, and for musl. QEMU's user mode runs AArch64 and RISC-V.
#
#   scripts/foreign.sh [--quick | --only CAPABILITY] [aarch64|riscv64|musl]…    default: all three
#
# --quick is what continuous integration runs: on AArch64, what depends on the machine most. --only runs one check, by its name.
# Installs what is missing: cross compilers of Debian, Debian's libraries for arm64 (scripts/arm64.sh), Rust's libraries. At the end it
# prints one line for each check, "platform capability ok" or "platform capability FAILED", which are also in target/foreign.txt.
# docs/platforms.md explains them. JITSCRIBE_BIN is the command, built for this machine (default: it is built).
#
# Tests start programs of the other machine, so the kernel must know QEMU. That needs a user namespace, on Linux 6.7 or later.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin
export CARGO_INCREMENTAL=0

quick=
only=
platforms=()
for argument in "$@"; do
    [ "$only" != next ] || { only=$argument && continue; }
    case $argument in
        --quick) quick=yes ;;
        --only) only=next ;;
        aarch64 | riscv64 | musl) platforms+=("$argument") ;;
        *)
            sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
    esac
done
if [ ${#platforms[@]} = 0 ]; then
    if [ -n "$quick" ]; then platforms=(aarch64); else platforms=(aarch64 riscv64 musl); fi
fi
wants() {
    [[ " ${platforms[*]} " == *" $1 "* ]]
}

root=$PWD
cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
capi=$root/crates/bindings/jitscribe-capi
mkdir -p "$target"

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

### What is needed.

prepare() {
    local targets=() packages=() one
    if wants aarch64; then
        targets+=(aarch64-unknown-linux-gnu)
        command -v aarch64-linux-gnu-g++ >/dev/null || packages+=(g++-aarch64-linux-gnu libc6-dev-arm64-cross)
    fi
    if wants riscv64; then
        targets+=(riscv64gc-unknown-linux-gnu)
        command -v riscv64-linux-gnu-gcc >/dev/null || packages+=(gcc-riscv64-linux-gnu libc6-dev-riscv64-cross)
    fi
    if wants musl; then
        targets+=(x86_64-unknown-linux-musl)
        command -v musl-gcc >/dev/null || packages+=(musl-tools)
    fi
    if [ ${#packages[@]} != 0 ]; then
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
    fi
    for one in "${targets[@]}"; do
        [ -d "$(rustc --print sysroot)/lib/rustlib/$one/lib" ] || rustup target add "$one"
    done
    scripts/qemu.sh "$cache/qemu"
    if wants aarch64; then scripts/arm64.sh "$cache/arm64"; fi
    if [ -z "${JITSCRIBE_BIN:-}" ]; then
        cargo build --quiet --locked -p jitscribe-cli
        export JITSCRIBE_BIN=$target/debug/jitscribe
    fi
}

### How it is run.

results=()
failed=0
# Runs a command, and notes the result: platform, capability, command.
check() {
    local platform=$1 capability=$2 began=$SECONDS
    [ -z "$only" ] || [ "$only" = "$capability" ] || return 0
    shift 2
    printf '\n== %s: %s (%d s so far)\n' "$platform" "$capability" "$SECONDS"
    # In a shell of its own that the first error ends. In a condition it would not.
    set +e
    (set -e; "$@") </dev/null
    local result=$?
    set -e
    if [ $result = 0 ]; then
        results+=("$platform $capability ok")
    else
        results+=("$platform $capability FAILED")
        failed=1
    fi
    printf '%s: %s took %d s\n' "$platform" "$capability" $((SECONDS - began))
}

# Tests of crates. What a test cannot do here, it reports by name.
tests_of() {
    cargo test --quiet --locked --no-fail-fast --target "$1" "${@:2}"
}

# Starts tinyjit, and has the command, which is built for this machine, read its code from outside: it is where it was moved to.
announced_by() {
    local scratch pid
    scratch=$(mktemp -d)
    mkfifo "$scratch/input"
    JITSCRIBE=bytes "$1" wait <"$scratch/input" >"$scratch/output" &
    pid=$!
    exec 7>"$scratch/input"
    until grep -q '^43 44 ' "$scratch/output"; do sleep 0.1; done
    "$JITSCRIBE_BIN" dump -p "$pid" >"$scratch/dumped"
    exec 7>&-
    wait "$pid"
    cat "$scratch/dumped"
    grep -q "$(sed 's/.* 0x//' "$scratch/output") .* add_42" "$scratch/dumped"
    rm -r "$scratch"
}

# C programs that link the static and the shared library: target, compiler. They end with 0 if all is as it should be.
c_programs() {
    local built=$target/$1/debug compiler=$2 scratch pid
    cargo build --quiet --locked --target "$1" -p jitscribe-capi -p jitscribe-shared
    scratch=$(mktemp -d)
    cp "$built/libjitscribe_shared.so" "$scratch/libjitscribe.so.0"
    $compiler -std=c11 -O1 -Wall -Wextra -Werror -I"$capi/include" "$capi/examples/c/tinyjit.c" "$built/libjitscribe_capi.a" \
        -pthread -ldl -lm -o "$scratch/static"
    $compiler -std=c11 -O1 -Wall -Wextra -Werror -I"$capi/include" "$capi/examples/c/tinyjit.c" "$scratch/libjitscribe.so.0" \
        -Wl,-rpath,"$scratch" -o "$scratch/shared"
    $compiler -std=c11 -I"$capi/include" "$capi/tests/c/arena.c" "$built/libjitscribe_capi.a" -pthread -ldl -lm -o "$scratch/arena"
    "$scratch/static"
    "$scratch/shared"
    mkdir "$scratch/codes"
    "$scratch/arena" "$scratch/codes"

    announced_by "$scratch/shared"
    rm -r "$scratch"
}

# The bridge, in node of Debian for arm64: what it announces while node runs is what node writes into its dump.
bridge_node() {
    local scratch pid node=$cache/arm64/usr/bin/node
    cargo build --quiet --locked --target aarch64-unknown-linux-gnu -p jitscribe-preload
    scratch=$(mktemp -d)
    cd "$scratch"
    LD_PRELOAD=$target/aarch64-unknown-linux-gnu/debug/libjitscribe_preload.so JITSCRIBE=bytes \
        "$node" --perf-prof -e "$(cat "$root/tests/workloads/spin.js"); require('fs').writeFileSync('ready', ''); require('fs').readFileSync(0)" \
        < <(until [ -e done ]; do sleep 0.1; done) &
    pid=$!
    until [ -e ready ]; do sleep 0.1; done
    "$JITSCRIBE_BIN" dump -p "$pid" >announced
    touch done
    wait "$pid"
    "$JITSCRIBE_BIN" dump jit-*.dump >written 2>/dev/null
    # Address, size and name, without the tier that is behind it.
    codes() {
        awk '!/^#/ { print $2, $3, $7 }' "$1" | sort -u
    }
    codes announced >one
    codes written >other
    wc -l one other
    [ "$(wc -l <one)" -gt 1000 ]
    # All that is announced was written.
    [ -z "$(comm -23 one other)" ]
    grep -q sieve one
    cd "$root"
    rm -r "$scratch"
}

# The bridge describes the frames of signed code as signed.
bridge_signed() {
    local scratch pid
    cargo build --quiet --locked --target aarch64-unknown-linux-gnu -p jitscribe-preload
    scratch=$(mktemp -d)
    cd "$scratch"
    aarch64-linux-gnu-gcc -O1 -Wall -Wextra -Werror -o "$scratch/signed" "$root/tests/workloads/bridge/signed.c"
    mkfifo "$scratch/input"
    LD_PRELOAD=$target/aarch64-unknown-linux-gnu/debug/libjitscribe_preload.so JITSCRIBE=bytes \
        "$scratch/signed" <"$scratch/input" >"$scratch/output" &
    pid=$!
    exec 7>"$scratch/input"
    until grep -q ready "$scratch/output"; do sleep 0.1; done
    "$JITSCRIBE_BIN" dump -p "$pid" --elf "$scratch/images"
    exec 7>&-
    wait "$pid"
    readelf --debug-dump=frames "$scratch"/images/*.elf >"$scratch/frames"
    grep -E 'FDE|negate_ra_state' "$scratch/frames"
    [ "$(grep -c ' FDE ' "$scratch/frames")" = 2 ]
    [ "$(grep -c DW_CFA_AARCH64_negate_ra_state "$scratch/frames")" = 1 ]
    rm -r "$scratch"
}

# The command, built for the other machine, writes what the one for this machine writes, byte for byte: of recordings of x86-64 and of
# one under QEMU, each as a file and as a stream.
command_of() {
    # Its helper process, which opens files, has no environment, so that QEMU_LD_PREFIX cannot lead it to its loader.
    cargo rustc --quiet --locked --target "$1" -p jitscribe-cli --bin jitscribe -- -C link-arg="-Wl,--dynamic-linker=$2,-rpath,$(dirname "$2")"
    scripts/same-output.sh "$JITSCRIBE_BIN" "$target/$1/debug/jitscribe" node18-b12 qemu10-aarch64-perfmap mono68-b12
}

# The same of node on AArch64, with a dump's objects, list and check.
command_of_aarch64() {
    local own=$target/$1/debug/jitscribe node=$cache/arm64/usr/bin/node scratch command dump
    command_of "$@"
    scratch=$(mktemp -d)
    (cd "$scratch" && "$node" --perf-prof "$root/tests/workloads/spin.js")
    dump=$(echo "$scratch"/jit-*.dump)
    cargo run --quiet --locked -p end-to-end --bin sample-aarch64 -- "$dump" "$scratch/perf.data"
    for command in "$JITSCRIBE_BIN" "$own"; do
        # Paths are part of the output, so both write to the same place.
        mkdir "$scratch/out"
        "$command" inject -i "$scratch/perf.data" -o "$scratch/out/perf.data" --image-dir "$scratch/out/images"
        "$command" dump --elf "$scratch/out/objects" "$dump" >"$scratch/out/elf"
        "$command" dump "$dump" >"$scratch/out/dump"
        # Names that node wrote from freed memory are errors.
        "$command" check "$dump" >"$scratch/out/check" || [ $? = 1 ]
        mv "$scratch/out" "$scratch/by-$([ "$command" = "$own" ] && echo qemu || echo this)"
    done
    find "$scratch/by-qemu" -type f | wc -l
    grep -q sieve "$scratch/by-qemu/dump"
    grep -q 'jitdump, .* codes' "$scratch/by-qemu/check"
    diff -r "$scratch/by-this" "$scratch/by-qemu"
    rm -r "$scratch"
}

aarch64() {
    local of=aarch64-unknown-linux-gnu
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
    export QEMU_LD_PREFIX=$cache/arm64 JITSCRIBE_CC=aarch64-linux-gnu-gcc JITSCRIBE_CXX=aarch64-linux-gnu-g++
    check aarch64 unwinders tests_of $of -p publish-unwind --test it -- through:: objects::
    check aarch64 arena tests_of $of -p code-arena --tests
    [ -z "$quick" ] || return 0
    check aarch64 libunwind tests_of $of -p publish-unwind --test live
    check aarch64 c-api c_programs $of aarch64-linux-gnu-gcc
    check aarch64 bridge bridge_node
    check aarch64 bridge-signed-frames bridge_signed
    check aarch64 jitdump tests_of $of -p jitdump
    check aarch64 perf-map tests_of $of -p perf-map -p publish-perf-map
    check aarch64 code-log tests_of $of -p code-log
    check aarch64 process-context tests_of $of -p jitscribe-process-context
    check aarch64 unwind-info tests_of $of -p unwind-info
    check aarch64 images tests_of $of -p code-image
    check aarch64 guest tests_of $of -p jitscribe-guest -p jitscribe-fallible
    check aarch64 debuggers tests_of $of -p publish-gdb
    check aarch64 valgrind-requests tests_of $of -p publish-valgrind
    # One test stops at each store of many updates: minutes, under QEMU.
    check aarch64 library tests_of $of -p jitscribe --lib -- --skip a_kill_during_reuse_keeps_all_live_code
    check aarch64 library tests_of $of -p jitscribe --test it -- log:: model:: threads::
    check aarch64 library-processes tests_of $of -p jitscribe --test refused --test processes --test vtune
    check aarch64 command command_of_aarch64 $of /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1
}

riscv64() {
    local of=riscv64gc-unknown-linux-gnu
    export CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_LINKER=riscv64-linux-gnu-gcc CC_riscv64gc_unknown_linux_gnu=riscv64-linux-gnu-gcc
    export QEMU_LD_PREFIX=/usr/riscv64-linux-gnu JITSCRIBE_CC=riscv64-linux-gnu-gcc
    check riscv64 jitdump tests_of $of -p jitdump
    check riscv64 perf-map tests_of $of -p perf-map
    check riscv64 unwind-info tests_of $of -p unwind-info
    check riscv64 code-log tests_of $of -p code-log
    check riscv64 library tests_of $of -p jitscribe --test it -- log:: model:: threads::
    check riscv64 command command_of $of /usr/riscv64-linux-gnu/lib/ld-linux-riscv64-lp64d.so.1
}

# A program with musl's C library: a static one, one with musl's dynamic linker, as on Alpine, and one with the shared library.
musl_c_program() {
    local link=$1 library=$2 scratch program
    scratch=$(mktemp -d)
    program=$scratch/tinyjit
    make --silent -C "$capi" install CC=musl-gcc PROFILE=dev CARGO="cargo --locked" PREFIX="$scratch/installed" CARGO_TARGET_DIR="$target/musl"
    musl-gcc "$link" -std=c11 -O1 -Wall -I"$scratch/installed/include" "$capi/examples/c/tinyjit.c" "$scratch/installed/lib/$library" \
        -Wl,-rpath,"$scratch/installed/lib" -o "$program"
    readelf -lW "$program" >"$scratch/headers"
    "$program"
    if [ "$link" = -static ]; then
        [ "$(grep -c INTERP "$scratch/headers" || true)" = 0 ]
    else
        grep 'interpreter: /lib/ld-musl-' "$scratch/headers"
    fi
    announced_by "$program"
    rm -r "$scratch"
}

# The static command, in the same way.
musl_command() {
    cargo build --quiet --locked --target x86_64-unknown-linux-musl -p jitscribe-cli
    scripts/same-output.sh "$JITSCRIBE_BIN" "$target/x86_64-unknown-linux-musl/debug/jitscribe" node18-b12 php82-jitdebug32 mono68-b12
}

musl() {
    local of=x86_64-unknown-linux-musl
    check musl c-api musl_c_program -static libjitscribe.a
    check musl c-api musl_c_program -pie libjitscribe.a
    check musl c-api musl_c_program -pie libjitscribe.so
    check musl jitdump tests_of $of -p jitdump
    check musl perf-map tests_of $of -p perf-map
    check musl code-log tests_of $of -p code-log
    check musl images tests_of $of -p code-image
    check musl library tests_of $of -p jitscribe --test it -- log:: model:: threads::
    check musl command musl_command
}

# Makes the kernel start programs of a machine by QEMU, in this namespace.
register() {
    local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    # PF: with the original name, and the interpreter opened now.
    printf '%s' ":qemu-$1:M::$magic$2\\x00:$mask:$cache/qemu/usr/bin/qemu-$1:PF" >/proc/sys/fs/binfmt_misc/register
}

# Runs a command in a user and mount namespace, as root of it. Root has all users in it, others only themselves.
within() {
    if [ "$(id -u)" != 0 ]; then
        unshare --user --map-root-user --mount "$@"
        return
    fi
    local holder outside result=0
    outside=$(readlink /proc/self/ns/user)
    unshare --user --mount sleep infinity &
    holder=$!
    while [ "$(readlink "/proc/$holder/ns/user")" = "$outside" ]; do
        kill -0 "$holder" || return 1
        sleep 0.1
    done
    echo "0 0 4294967295" >"/proc/$holder/uid_map"
    echo "0 0 4294967295" >"/proc/$holder/gid_map"
    nsenter --user --mount --target "$holder" --setuid 0 --setgid 0 --wd="$PWD" "$@" || result=$?
    kill "$holder"
    return $result
}

if [ -z "${JITSCRIBE_FOREIGN:-}" ]; then
    prepare
    trial='mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && [ -w /proc/sys/fs/binfmt_misc/register ]'
    if ! within sh -c "$trial"; then
        message="skipped: needs binfmt_misc in a user namespace (Linux 6.7): scripts/foreign.sh ${platforms[*]}"
        echo "$message" >&2
        [ -z "${JITSCRIBE_NO_SKIP:-}" ] || exit 1
        [ -z "${JITSCRIBE_SKIPPED:-}" ] || echo "$message" >>"$JITSCRIBE_SKIPPED"
        exit 0
    fi
    # What QEMU cannot do, it can with no privilege.
    export JITSCRIBE_FOREIGN=inside
    unset JITSCRIBE_NO_SKIP
    within "$0" "$@"
    exit
fi
mountpoint -q /proc/sys/fs/binfmt_misc && umount /proc/sys/fs/binfmt_misc || true
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
if wants aarch64; then register aarch64 '\xb7'; fi
if wants riscv64; then register riscv64 '\xf3'; fi
for platform in "${platforms[@]}"; do
    "$platform"
done

printf '\n'
printf '%s\n' "${results[@]}" | tee "$target/foreign.txt"
exit $failed
