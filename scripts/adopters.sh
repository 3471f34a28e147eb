#!/usr/bin/env bash
# Builds the programs of examples/adopters, records them, and checks what perf shows of their code: every sample has a name, and
# those in functions of known names have the lines and callers that examples/adopters says.
#
#   scripts/adopters.sh [NAME]...     libtcc asmjit xbyak gccjit inkwell rbpf iced sljit ubpf mir luau oaknut luajit components
#                                     (default: all of them)
#   scripts/adopters.sh wasmtime      the tests of the adapter for wasmtime with other versions (WASMTIME, default: 50 49 47)
#
# libtcc, AsmJit, Xbyak, libgccjit and LLVM are packages of Debian, which scripts/setup.sh live installs. All others are fetched:
# LuaJIT's source and oaknut from Debian, the rest from crates.io, where packages contain the sources of sljit, uBPF, MIR and Luau.
# rbpf, MIR and LuaJIT are patched. The newer versions of wasmtime need a newer Rust, which rustup installs. JITSCRIBE_BIN names the
# command, and is in the folder of the library; without it, both are built.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- libtcc asmjit xbyak gccjit inkwell rbpf iced sljit ubpf mir luau oaknut luajit components
root=$PWD
target=$(realpath "${CARGO_TARGET_DIR:-target}")
built=$target/adopters
mkdir -p "$built"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CARGO_INCREMENTAL=0

# The C library, as a user installs it.
installed=
install_library() {
    if [ -z "$installed" ]; then
        installed=$scratch/installed
        make --silent -C crates/bindings/jitscribe-capi install PREFIX="$installed" PROFILE=dev CARGO_TARGET_DIR="$target" \
            BUILT="${JITSCRIBE_BIN:+$(dirname "$JITSCRIBE_BIN")}"
    fi
}

# c_program NAME SOURCE OPTION...: a program in C with the library, $scratch/NAME. cxx_program: the same in C++.
c_program() {
    install_library
    cc -std=gnu11 -O1 -Wall -Wextra -Werror -I "$installed/include" "$2" -o "$scratch/$1" "${@:3}" \
        "$installed/lib/libjitscribe.a" -lpthread -ldl -lm
}
cxx_program() {
    install_library
    c++ -std=c++17 -O1 -Wall -Wextra -Werror -I "$installed/include" "$2" -o "$scratch/$1" "${@:3}" \
        "$installed/lib/libjitscribe.a" -lrt -lpthread -ldl
}

# Prints the folder of a package of crates.io, which is fetched if it is not there: package_source FOLDER-OF-CARGO.TOML PACKAGE.
# Cargo.lock has its checksum.
package_source() {
    cargo metadata --locked --format-version 1 --manifest-path "$1/Cargo.toml" |
        python3 -c 'import json, os, sys
print(next(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]))' "$2"
}

# Sets the variable `apt` of its caller to options for packages of a suite of Debian: apt_of deb|deb-src SUITE. apt checks their
# signature.
apt_of() {
    local mirror lists=$scratch/$1-$2
    # shellcheck disable=SC2016 # for apt
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
    mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
    echo "$1 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $2 main" >"$lists/sources.list"
    apt=(-o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$lists/lists" -o Dir::Cache="$lists/cache" -o APT::Sandbox::User="$(id -un)")
    apt-get "${apt[@]}" update -qq
}

need_command() {
    if [ -z "${JITSCRIBE_BIN:-}" ]; then
        cargo build --quiet --locked -p jitscribe-cli
        JITSCRIBE_BIN=$target/debug/jitscribe
    fi
}

# recorded NAME CALL-GRAPH COMMAND...: into $scratch/NAME.data
recorded() {
    local name=$1 graph=$2
    shift 2
    need_command
    (cd "$scratch" && HOME=$scratch "$JITSCRIBE_BIN" record -o "$name.data" -F 499 --call-graph "$graph" -- "$@" >"$name.log" 2>&1) || {
        cat "$scratch/$name.log" >&2
        return 1
    }
}
check() {
    local name=$1
    shift
    python3 examples/adopters/check.py "$scratch/$name.data" "$@" | sed "s/^/adopters.sh: $name: /"
}

libtcc() {
    c_program tcc-jit examples/adopters/libtcc/tcc-jit.c -ltcc
    recorded libtcc fp "$scratch/tcc-jit" "$root/examples/adopters/libtcc/work.c" 3
    check libtcc --names fib,mix --caller run --bottom main
}

asmjit() {
    cxx_program asm-jit examples/adopters/asmjit/asm-jit.cpp -lasmjit
    recorded asmjit fp "$scratch/asm-jit" 2
    check asmjit --names 'down by one,down by two' --bottom main
}

xbyak() {
    cxx_program xbyak-jit examples/adopters/xbyak/xbyak-jit.cpp
    recorded xbyak dwarf "$scratch/xbyak-jit" 2
    check xbyak --names 'mix of words' --caller rounds --bottom _start
}

gccjit() {
    c_program gcc-jit examples/adopters/gccjit/gcc-jit.c -lgccjit
    recorded gccjit dwarf "$scratch/gcc-jit" 2
    check gccjit --names mix --caller rounds --bottom _start
}

iced() {
    cargo build --quiet --locked --manifest-path examples/adopters/iced/Cargo.toml --target-dir "$built"
    recorded iced dwarf "$built/debug/iced-jit" 2
    check iced --names 'mix of words' --file main.rs --caller rounds --bottom _start
}

sljit() {
    local source
    source=$(package_source examples/adopters/sources pcre2-sys)/upstream/deps/sljit/sljit_src
    cc -O1 -w -DSLJIT_CONFIG_AUTO=1 -c "$source/sljitLir.c" -o "$scratch/sljit.o"
    c_program sljit-jit examples/adopters/sljit/sljit-jit.c -DSLJIT_CONFIG_AUTO=1 -isystem "$source" "$scratch/sljit.o"
    recorded sljit dwarf "$scratch/sljit-jit" 2
    check sljit --names 'mix of words' --caller rounds --bottom _start
}

mir() {
    local source
    source=$(package_source examples/adopters/sources mir-sys)/mir
    install_library
    mkdir "$scratch/mir"
    cp "$source"/*.[ch] "$scratch/mir"
    patch --quiet --directory "$scratch/mir" --strip 1 <examples/adopters/mir/mir-1.0.patch
    cc -std=gnu11 -O1 -w -Wno-psabi -fsigned-char -c "$scratch/mir/mir.c" -o "$scratch/mir/mir.o"
    cc -std=gnu11 -O1 -w -fsigned-char -DMIR_USE_JITSCRIBE -I "$installed/include" -c "$scratch/mir/mir-gen.c" -o "$scratch/mir/mir-gen.o"
    c_program mir-jit examples/adopters/mir/mir-jit.c -isystem "$scratch/mir" "$scratch"/mir/*.o
    recorded mir dwarf "$scratch/mir-jit" 2
    check mir --names mix --caller rounds --bottom _start
}

ubpf() {
    local source file
    source=$(package_source examples/adopters/sources libubpf-sys)/ubpf/vm
    mkdir "$scratch/ubpf"
    # What its CMake file makes of ubpf_config.h.inc.
    printf '#define UBPF_HAS_ELF_H\n' >"$scratch/ubpf/ubpf_config.h"
    for file in instruction_valid jit jit_arm64 jit_support jit_x86_64 loader safe vm; do
        cc -O1 -w -D_GNU_SOURCE -I "$source/inc" -I "$scratch/ubpf" -c "$source/ubpf_$file.c" -o "$scratch/ubpf/$file.o"
    done
    c_program ubpf-jit examples/adopters/ubpf/ubpf-jit.c -isystem "$source/inc" -isystem "$scratch/ubpf" "$scratch"/ubpf/*.o
    recorded ubpf dwarf "$scratch/ubpf-jit" 2
    check ubpf --names 'eBPF program' --bottom _start
}

luau() {
    local source options='' part
    source=$(package_source examples/adopters/sources luau0-src)/luau
    for part in Ast Bytecode CodeGen Common Compiler Inliner VM; do
        options+=" -I $source/$part/include -I $source/$part/src"
    done
    mkdir "$scratch/luau"
    # 100 files: without optimization, as only what Luau itself compiles is of interest.
    # shellcheck disable=SC2086 # several options
    (cd "$scratch/luau" && printf '%s\0' "$source"/{Ast,Bytecode,CodeGen,Common,Compiler,Inliner,VM}/src/*.cpp |
        xargs -0 -n 5 -P "$(nproc)" c++ -std=c++17 -w $options -c && ar -rcs libluau.a ./*.o)
    # shellcheck disable=SC2086
    cxx_program luau-jit examples/adopters/luau/luau-jit.cpp ${options//-I/-isystem} "$scratch/luau/libluau.a"
    recorded luau dwarf "$scratch/luau-jit" "$root/examples/adopters/luau/work.luau" 2
    check luau --names "<luau> $root/examples/adopters/luau/work.luau:2 mix" --bottom _start
}

inkwell() {
    cargo build --quiet --locked --manifest-path examples/adopters/inkwell/Cargo.toml --target-dir "$built"
    recorded inkwell dwarf "$built/debug/inkwell-jit" "$root/tests/workloads/spin.ll" 2
    # LLVM gives the common end of two paths in `fib` no line.
    check inkwell --names 'fib,mix of words' --file spin.src --with-lines 30 --caller main --bottom _start
}

rbpf() {
    local here=examples/adopters/rbpf original
    original=$(package_source $here/original rbpf)
    rm -rf $here/patched
    mkdir $here/patched
    cp -r "$original"/{Cargo.toml,src,examples,tests,README.md} $here/patched/
    patch --quiet --directory $here/patched --strip 1 <$here/rbpf-0.4.1.patch
    cargo build --quiet --locked --manifest-path $here/Cargo.toml --target-dir "$built"
    recorded rbpf dwarf "$built/debug/rbpf-jit" 2
    check rbpf --names 'eBPF program' --file program.ebpf --bottom _start
}

luajit() {
    install_library
    # Debian 12's own version, of which the installed one has no publisher: neither ours nor a perf map.
    local apt
    apt_of deb-src bookworm
    (cd "$scratch" && apt-get "${apt[@]}" source --download-only -qq luajit)
    mkdir "$scratch/luajit"
    # What Debian changes is not needed.
    tar -x -C "$scratch/luajit" -f "$scratch"/luajit_*.orig.tar.gz
    patch --quiet --directory "$scratch/luajit" --strip 1 <examples/adopters/luajit/luajit-2.1.patch
    make --silent -C "$scratch/luajit" BUILDMODE=static XCFLAGS="-DLUAJIT_USE_JITSCRIBE -I$installed/include" \
        TARGET_LIBS="$installed/lib/libjitscribe.a" >"$scratch/luajit.log" 2>&1 || {
        cat "$scratch/luajit.log" >&2
        return 1
    }
    recorded luajit dwarf "$scratch/luajit/src/luajit" "$root/examples/adopters/luajit/work.lua" 3
    check luajit --names "TRACE_1::$root/examples/adopters/luajit/work.lua:5" --file work.lua --caller lua_pcall --bottom main
}

# For AArch64, under QEMU, where perf records nothing: the command reads the code from outside, and the program walks its own stack.
oaknut() {
    local apt of=aarch64-unknown-linux-gnu pid cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
    need_command
    scripts/qemu.sh "$cache/qemu"
    scripts/arm64.sh "$cache/arm64"
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
        cargo build --quiet --locked --target $of -p jitscribe-capi
    apt_of deb trixie
    (cd "$scratch" && apt-get "${apt[@]}" download -qq liboaknut-dev && dpkg -x liboaknut-dev_*.deb oaknut)
    aarch64-linux-gnu-g++ -std=c++20 -O1 -Wall -Wextra -Werror -I crates/bindings/jitscribe-capi/include -isystem "$scratch/oaknut/usr/include" \
        examples/adopters/oaknut/oaknut-jit.cpp "$target/$of/debug/libjitscribe_capi.a" -lrt -lpthread -ldl -lm -o "$scratch/oaknut-jit"
    mkfifo "$scratch/oaknut.input"
    JITSCRIBE=bytes,unwinders "$cache/qemu/usr/bin/qemu-aarch64" -L "$cache/arm64" "$scratch/oaknut-jit" \
        <"$scratch/oaknut.input" >"$scratch/oaknut.output" &
    pid=$!
    exec 7>"$scratch/oaknut.input"
    until grep -q 'to the caller' "$scratch/oaknut.output"; do
        kill -0 "$pid"
        sleep 0.1
    done
    "$JITSCRIBE_BIN" dump -p "$pid" >"$scratch/oaknut.dumped"
    exec 7>&-
    wait "$pid"
    diff "$scratch/oaknut.output" - <<<$'through inner\nthrough rounds\nto the caller'
    grep -E ' yes (inner|rounds) ' "$scratch/oaknut.dumped" | sed 's/^/adopters.sh: oaknut: /'
    [ "$(grep -cE ' yes (inner|rounds) ' "$scratch/oaknut.dumped")" = 2 ]
}

# Behind a feature, which the tests of the workspace do not turn on.
components() {
    (cd crates/bindings/jitscribe-wasmtime && cargo test --quiet --locked --target-dir "$target/wasmtime" --features component-model)
}

# All tests of the adapter, with other versions than the one in Cargo.lock, in a copy of the repository.
wasmtime() {
    local version rust=1.98.0
    rustup toolchain list | grep -q "^$rust" || rustup toolchain install "$rust" --profile minimal --no-self-update
    for version in ${WASMTIME:-50 49 47}; do
        rm -rf "$scratch/copy"
        mkdir "$scratch/copy"
        git ls-files -z | xargs -0 cp --no-dereference --parents -t "$scratch/copy"
        (cd "$scratch/copy/crates/bindings/jitscribe-wasmtime" &&
            sed -i "s/^wasmtime = { version = \"[^\"]*\"/wasmtime = { version = \"$version\"/" Cargo.toml &&
            cargo +$rust test --quiet --target-dir "$built/wasmtime" --features component-model)
        echo "adopters.sh: the tests of the adapter pass with wasmtime $version"
    done
}

for name; do
    began=$SECONDS
    "$name"
    echo "adopters.sh: $name: $((SECONDS - began)) s"
done
