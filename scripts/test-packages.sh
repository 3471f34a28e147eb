#!/usr/bin/env bash
# Packs what cargo has built, and tests the packages with Debian's own tools.
#
#   scripts/test-packages.sh [--here] [FOLDER]     default: target/debug
#
# With --here, the archive alone is used, in a folder of this machine. Without it, the packages are also installed in a bare Debian that
# mmdebstrap makes, and used there. Its packages come from Debian's mirror the first time (124 MB), and then from JITSCRIBE_CACHE.
set -euo pipefail
cd "$(dirname "$0")/.."

here=
built=${CARGO_TARGET_DIR:-target}/debug
while [ $# -gt 0 ]; do
    case $1 in
        --here) here=yes ;;
        -*)
            sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
        *) built=$1 ;;
    esac
    shift
done

step() {
    printf '== %s (%d s so far)\n' "$1" "$SECONDS"
}
fail() {
    echo "test-packages.sh: $*" >&2
    exit 1
}
# Two lists that have to be equal, line by line.
same() {
    diff -u --label "$1: expected" --label "$1: found" "$2" "$3" || fail "$1 differ"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)

step "packing $built"
scripts/dist.sh --built "$built" "$scratch/dist"
(cd "$scratch/dist" && sha256sum --check --quiet SHA256SUMS)

step "lintian"
# The project has no address of its own to name.
lintian --allow-root --profile debian --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
    "$scratch/dist/"*.deb

step "symbols"
for package in jitscribe libjitscribe0 libjitscribe-dev; do
    dpkg-deb --raw-extract "$scratch/dist/${package}_$version"_*.deb "$scratch/$package"
done
exported() {
    nm -D --defined-only "$1" | awk '{ print $3 }' | LC_ALL=C sort
}
libraries=$scratch/jitscribe/usr/lib/jitscribe
printf '%s\n' gdb_init_reader plugin_is_GPL_compatible >"$scratch/expected"
exported "$libraries/libjitscribe_gdb.so" >"$scratch/found"
same "the symbols of gdb's reader" "$scratch/expected" "$scratch/found"
printf '%s\n' Agent_OnAttach Agent_OnLoad Agent_OnUnload >"$scratch/expected"
exported "$libraries/libjitscribe_jvmti.so" >"$scratch/found"
same "the symbols of Java's agent" "$scratch/expected" "$scratch/found"
echo napi_register_module_v1 >"$scratch/expected"
exported "$libraries/libjitscribe_node.so" >"$scratch/found"
same "the symbols of node's addon" "$scratch/expected" "$scratch/found"
# The library that is preloaded takes the place of functions of the C library, and of nothing else.
nm -D --defined-only "$(cc -print-file-name=libc.so.6)" | awk '{ sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$scratch/libc"
exported "$libraries/libjitscribe_preload.so" >"$scratch/expected"
LC_ALL=C comm -12 "$scratch/expected" "$scratch/libc" >"$scratch/found"
[ -s "$scratch/found" ] || fail "the preloaded library exports nothing"
same "the symbols of the preloaded library, and those of them that the C library has" "$scratch/expected" "$scratch/found"
# What dpkg makes of the symbols for a program that is linked with the library.
library=$(dirname "$scratch"/libjitscribe0/usr/lib/*/libjitscribe.so.0)
cc -o "$scratch/program" crates/bindings/jitscribe-capi/examples/c/tinyjit.c -I "$scratch/libjitscribe-dev/usr/include" "$library/libjitscribe.so.0"
mkdir "$scratch/debian"
printf 'Source: program\n\nPackage: program\nArchitecture: any\n' >"$scratch/debian/control"
needs=$(cd "$scratch" && dpkg-shlibdeps -O "-S$scratch/libjitscribe0" program)
[[ $needs == *"libjitscribe0 (>= ${version%.*}.0)"* ]] || fail "a program needs: $needs"

step "the archive"
mkdir "$scratch/unpacked"
tar -C "$scratch/unpacked" -xzf "$scratch/dist/jitscribe-$version-$(uname -m)-linux-gnu.tar.gz"
installer=("$scratch"/unpacked/*/install.sh)
prefix="$scratch/a place"
sh "${installer[0]}" --prefix "$prefix"
# In place of itself, with a file of an earlier version that is gone.
mkdir -p "$prefix/share/old"
touch "$prefix/share/old/file" "$prefix/bin/of-the-user"
echo share/old/file >>"$prefix/share/jitscribe/installed"
sh "${installer[0]}" --prefix "$prefix"
[ ! -e "$prefix/share/old" ] || fail "a file of an earlier version stayed"
# Not `jitscribe run`: LD_PRELOAD takes no path with a blank.
"$prefix/bin/demo-jit" --phase 10 --quiet
words=$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config --cflags --libs jitscribe)
eval "cc -o '$scratch/linked' crates/bindings/jitscribe-capi/examples/c/tinyjit.c $words -Wl,-rpath,'$prefix/lib'"
"$scratch/linked" >/dev/null
# Both static libraries in one program, of which each contains Rust's own library.
words=$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config --cflags --libs jitscribe-codes)
eval "cc -o '$scratch/both' crates/bindings/jitscribe-codes/examples/c/code_at.c -Wl,--whole-archive '$prefix/lib/libjitscribe.a' -Wl,--no-whole-archive $words"
if "$scratch/both" /dev/null 0 2>"$scratch/said"; then fail "there is code in /dev/null"; fi
grep -q 'not a regular file' "$scratch/said" || fail "it says: $(cat "$scratch/said")"
sh "${installer[0]}" --uninstall --prefix "$prefix"
(cd "$prefix" && find . -mindepth 1) >"$scratch/found"
printf '%s\n' ./bin ./bin/of-the-user >"$scratch/expected"
same "what is left after --uninstall" "$scratch/expected" "$scratch/found"
# Another machine's, and one for a newer C library.
refuses() {
    cp -a "$scratch"/unpacked/* "$scratch/other"
    sed -i "$1" "$scratch/other/share/jitscribe/made-for"
    if sh "$scratch/other/install.sh" --prefix "$scratch/nowhere" 2>"$scratch/said"; then fail "installed in spite of $1"; fi
    grep -q "$2" "$scratch/said" || fail "it says: $(cat "$scratch/said")"
    [ ! -e "$scratch/nowhere" ] || fail "something was installed"
    rm -r "$scratch/other"
}
refuses 's/^machine .*/machine vax/' 'for vax'
refuses 's/^glibc .*/glibc 9.9/' 'need glibc 9.9'

if [ -n "$here" ]; then
    step "done, without a bare Debian"
    exit 0
fi

step "a bare Debian"
mkdir "$scratch/use"
cp "$scratch/dist/"*.deb "$scratch/dist/"*-linux-gnu.tar.gz scripts/dist/use-packages.sh "$scratch/use"
cp crates/bindings/jitscribe-capi/examples/c/tinyjit.c crates/bindings/jitscribe-codes/examples/c/code_at.c "$scratch/use"
# The mirror that this machine's own packages come from, and what an earlier run has fetched from it.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
archives=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}/bookworm-archives
mkdir -p "$archives"
# Without a tree that stays: all happens in its hooks, where mmdebstrap is root, by a user namespace if need be.
mmdebstrap --quiet --variant=apt --include=gcc,libc6-dev,pkg-config,cmake,make,gdb --aptopt='Acquire::Retries "5"' \
    --skip=download/empty --skip=essential/unlink --setup-hook='mkdir -p "$1/var/cache/apt/archives"' \
    --setup-hook="sync-in $archives /var/cache/apt/archives" --customize-hook="sync-out /var/cache/apt/archives $archives" \
    --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*jitscribe*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-include=/usr/share/man/man1/*ji*' \
    --customize-hook="copy-in $scratch/use /" \
    --customize-hook='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb sh /use/use-packages.sh >&2' \
    bookworm /dev/null "$mirror"
step "done"
