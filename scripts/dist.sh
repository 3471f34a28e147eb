#!/usr/bin/env bash
# Makes the packages of a release, and tries what is in them:
#
#   jitscribe-V-x86_64-linux-gnu.tar.gz     everything, with an install.sh
#   jitscribe-V-x86_64-linux-musl.tar.gz    the command alone, as a static program
#   jitscribe_V_amd64.deb                   the command, the demo, and the libraries that the command, gdb and Java load
#   libjitscribe0_V_amd64.deb               the shared library
#   libjitscribe-dev_V_amd64.deb            headers, static libraries, files for pkg-config and CMake
#
#   scripts/dist.sh [--built FOLDER] [FOLDER]      default: target/dist
#
# With --built, what cargo has built there (target/debug, for example) is packed, with little compression, and nothing is built.
# scripts/test-packages.sh installs the packages in a bare Debian and uses them.
#
# The programs need the C library of the machine that builds them, or a newer one: build on the oldest system that is to run them. Only the
# command has a static version: the libraries are loaded into programs that have the system's C library.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin
# For names in lists to have the same order everywhere.
export LC_ALL=C

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
built=
dist=
while [ $# -gt 0 ]; do
    case $1 in
        --built)
            built=$(realpath "${2:?--built needs a folder}")
            shift
            ;;
        -*)
            sed -n '2,19s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
        *) dist=$(realpath -m "$1") ;;
    esac
    shift
done
dist=${dist:-$target/dist}
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
machine=$(uname -m)
static=$machine-unknown-linux-musl
# Without jitscribe-capi, which its Makefile builds, in a profile of its own.
packages=(jitscribe-cli demo-jit jitscribe-preload jitscribe-jvmti jitscribe-node jitscribe-gdb jitscribe-codes)
# Files have the time of the last commit, so that the same commit gives the same packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

note() {
    echo "dist.sh: $*" >&2
}
strip_libraries() {
    strip --strip-unneeded --remove-section=.comment --remove-section=.note "$@"
}

compress=(-9n)
deb_compress=(-Zxz)
# How its Makefile gets the library for C, which it strips. Packages have no debug info.
for_capi=(CARGO="cargo --locked" DEBUGDIR=)
if [ -n "$built" ]; then
    for_capi=(BUILT="$built" DEBUGDIR=)
    compress=(-1n)
    deb_compress=(-Zgzip -z1)
    static_command=$(dirname "$built")/$static/$(basename "$built")/jitscribe
else
    built=$target/release
    static_command=$target/$static/release/jitscribe
    cargo build --release --locked "${packages[@]/#/--package=}"
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$static/lib" ]; then
        cargo build --release --locked --package jitscribe-cli --target "$static"
    fi
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
made=()
mkdir -p "$dist"

# What each archive and package has of the command: programs, pages, completions, documents.
tree=$stage/command/usr
install -D -t "$tree/bin" "$built/jitscribe" "$built/demo-jit"
strip --remove-section=.comment --remove-section=.note "$tree/bin/"*
# Where the command looks for them.
install -D -m 644 -t "$tree/lib/jitscribe" "$built/libjitscribe_preload.so" "$built/libjitscribe_jvmti.so" "$built/libjitscribe_node.so" "$built/libjitscribe_gdb.so"
strip_libraries "$tree/lib/jitscribe/"*.so
jitscribe=$tree/bin/jitscribe
mkdir -p "$tree/share/man/man1" "$tree/share/bash-completion/completions" "$tree/share/zsh/vendor-completions" \
    "$tree/share/fish/vendor_completions.d" "$tree/share/jitscribe" "$tree/share/doc/jitscribe/examples"
for page in $("$jitscribe" man --list); do
    "$jitscribe" man "${page#jitscribe-}" | gzip -9n >"$tree/share/man/man1/$page.1.gz"
done
gzip -9n <packaging/demo-jit.1 >"$tree/share/man/man1/demo-jit.1.gz"
"$jitscribe" completions bash >"$tree/share/bash-completion/completions/jitscribe"
"$jitscribe" completions zsh >"$tree/share/zsh/vendor-completions/_jitscribe"
"$jitscribe" completions fish >"$tree/share/fish/vendor_completions.d/jitscribe.fish"
# What gdb runs for programs that load the library, or by a line in ~/.gdbinit.
"$jitscribe" debug --print-script >"$tree/share/jitscribe/gdb.py"
install -m 644 -t "$tree/share/doc/jitscribe/examples" packaging/*.service packaging/*.yaml
scripts/third-party.sh "${packages[@]}" jitscribe-capi | gzip "${compress[@]}" >"$stage/THIRD-PARTY.gz"

# Archives: the same, and what install.sh needs to know.
document() {
    install -D -m 644 -t "$1/share/doc/jitscribe" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$stage/THIRD-PARTY.gz"
    install -m 755 scripts/install.sh "$1"
}
archive() {
    tar -C "$stage" --owner=0 --group=0 --numeric-owner --sort=name --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" |
        gzip "${compress[@]}" >"$dist/$1.tar.gz"
    made+=("$dist/$1.tar.gz")
}
gnu=jitscribe-$version-$machine-linux-gnu
cp -a "$tree" "$stage/$gnu"
# $1: where. More: arguments of `make`.
install_libraries() {
    local root=$1
    shift
    make --silent -C crates/bindings/jitscribe-capi install "${for_capi[@]}" DESTDIR="$root" PREFIX=/usr "$@" >&2
    make --silent -C crates/bindings/jitscribe-codes install BUILT="$built" DESTDIR="$root" PREFIX=/usr "$@"
    find "$root" -name libjitscribe_codes.a -exec strip --strip-debug {} +
}
install_libraries "$stage/library"
cp -a "$stage/library/usr/." "$stage/$gnu"
# The archive is unpacked anywhere: paths start from the files themselves.
sed -i -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|^libdir=.*|libdir=${prefix}/lib|' -e 's|^includedir=.*|includedir=${prefix}/include|' \
    "$stage/$gnu/lib/pkgconfig/"*.pc
sed -i 's|"/usr/|"${CMAKE_CURRENT_LIST_DIR}/../../../|' "$stage/$gnu/lib/cmake/jitscribe/jitscribe-config.cmake"
document "$stage/$gnu"
# The newest version of the C library that any of the files asks for.
glibc=$(objdump -T "$stage/$gnu/bin/"* "$stage/$gnu/lib/jitscribe/"*.so "$stage/$gnu/lib/libjitscribe.so.$version" |
    grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d_ -f2)
printf 'machine %s\nglibc %s\n' "$machine" "$glibc" >"$stage/$gnu/share/jitscribe/made-for"
archive "$gnu"
tried=("$gnu")

if [ -x "$static_command" ]; then
    musl=jitscribe-$version-$machine-linux-musl
    mkdir "$stage/$musl"
    cp -a "$tree/share" "$stage/$musl"
    rm "$stage/$musl/share/man/man1/demo-jit.1.gz"
    install -D -t "$stage/$musl/bin" "$static_command"
    strip --remove-section=.comment --remove-section=.note "$stage/$musl/bin/jitscribe"
    document "$stage/$musl"
    printf 'machine %s\n' "$machine" >"$stage/$musl/share/jitscribe/made-for"
    archive "$musl"
    tried+=("$musl")
else
    note "no static archive, as there is no $static_command (rustup target add $static)"
fi

if command -v dpkg-deb dpkg-shlibdeps >/dev/null; then
    . scripts/dist/deb.sh
else
    note "no .deb, as dpkg-dev is not installed"
fi

# What was packed runs, and finds what belongs to it.
for name in "${tried[@]}"; do
    rm -rf "$stage/try"
    mkdir "$stage/try"
    tar -C "$stage/try" -xzf "$dist/$name.tar.gz"
    "$stage/try/$name/install.sh" --check >/dev/null
done
if [ -x "$static_command" ]; then
    # glibc warns of `dlopen` in static programs.
    cc -static -o "$stage/announces" crates/bindings/jitscribe-capi/examples/c/tinyjit.c -I "$stage/$gnu/include" "$stage/$gnu/lib/libjitscribe.a" \
        2>"$stage/said" || {
        cat "$stage/said" >&2
        exit 1
    }
    scripts/dist/use-static.sh "$stage/$musl/bin/jitscribe" "$stage/$gnu/bin/jitscribe" "$stage/announces"
fi
"$stage/$gnu/bin/demo-jit" --phase 10 --quiet
"$stage/$gnu/bin/jitscribe" run -- true
(cd "$dist" && sha256sum -- "${made[@]##*/}" >SHA256SUMS)
ls -l "${made[@]}" | awk '{printf "dist.sh: %s (%.1f MB)\n", $NF, $5 / 1e6}'
