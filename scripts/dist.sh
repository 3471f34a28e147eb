#!/usr/bin/env bash
# Makes packages for machines without a compiler: a tar archive, and a .deb if dpkg-deb is installed. Both contain the command, the demo,
# the agents and readers that the command and gdb load, the library for C and C++, man pages and shell completions.
#
#   scripts/dist.sh [FOLDER]      default: target/dist
#
# The programs need the C library of the machine that builds them, or a newer one: build on the oldest system that is to run them.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

dist=$(realpath -m "${1:-${CARGO_TARGET_DIR:-target}/dist}")
version=$(cargo metadata --format-version 1 --no-deps --locked |
    python3 -c 'import json, sys
print(next(package["version"] for package in json.load(sys.stdin)["packages"] if package["name"] == "jitscribe-cli"))')
machine=$(uname -m)
built=${CARGO_TARGET_DIR:-target}/release
name=jitscribe-$version-$machine-linux-gnu
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

cargo build --release --locked -p jitscribe-cli -p demo-jit -p jitscribe-preload -p jitscribe-jvmti -p jitscribe-gdb
make --silent -C crates/bindings/jitscribe-capi install DESTDIR="$stage/root" PREFIX=/usr

root=$stage/root/usr
install -D -t "$root/bin" "$built/jitscribe" "$built/demo-jit"
# Where the command looks for them.
install -D -m 644 -t "$root/lib/jitscribe" "$built/libjitscribe_preload.so" "$built/libjitscribe_jvmti.so" "$built/libjitscribe_gdb.so"
strip "$root/bin/"*
strip --strip-unneeded "$root/lib/jitscribe/"*.so "$root/lib/libjitscribe.so.$version"
strip --strip-debug "$root/lib/libjitscribe.a"
jitscribe=$root/bin/jitscribe
mkdir -p "$root/share/man/man1" "$root/share/bash-completion/completions" "$root/share/zsh/vendor-completions" \
    "$root/share/fish/vendor_completions.d" "$root/share/doc/jitscribe"
"$jitscribe" man | gzip -9n >"$root/share/man/man1/jitscribe.1.gz"
"$jitscribe" completions bash >"$root/share/bash-completion/completions/jitscribe"
"$jitscribe" completions zsh >"$root/share/zsh/vendor-completions/_jitscribe"
"$jitscribe" completions fish >"$root/share/fish/vendor_completions.d/jitscribe.fish"
install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$root/share/doc/jitscribe"

mkdir -p "$dist"
cp -a "$root" "$stage/$name"
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$dist/$name.tar.gz" "$name"
made=("$dist/$name.tar.gz")

if command -v dpkg-deb >/dev/null; then
    # The newest version of the C library that any of the files asks for.
    glibc=$(objdump -T "$root/bin/"* "$root/lib/jitscribe/"*.so "$root/lib/libjitscribe.so.$version" |
        grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d_ -f2)
    mkdir "$stage/root/DEBIAN"
    cat >"$stage/root/DEBIAN/control" <<END
Package: jitscribe
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the jitscribe developers <jitscribe@localhost>
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: libc6 (>= $glibc), libgcc-s1
Recommends: linux-perf, binutils
Suggests: gdb, valgrind
Section: devel
Priority: optional
Description: makes JIT-compiled code visible to perf, gdb, lldb and Valgrind
 The command adds names, source lines, assembly and call stacks of jitted code to what a
 tool recorded. The library is what language runtimes link to report their code.
END
    dpkg-deb --root-owner-group --build "$stage/root" "$dist/jitscribe_${version}_$(dpkg --print-architecture).deb" >/dev/null
    made+=("$dist/jitscribe_${version}_$(dpkg --print-architecture).deb")
else
    echo "dist.sh: no .deb, as dpkg-deb is not installed" >&2
fi

# What was packed runs, and finds what belongs to it.
mkdir "$stage/try"
tar -C "$stage/try" -xzf "$dist/$name.tar.gz"
try=$stage/try/$name/bin
"$try/jitscribe" --version >/dev/null
"$try/demo-jit" --phase 10 --quiet
"$try/jitscribe" run -- true
ls -l "${made[@]}" | awk '{printf "dist.sh: %s (%.1f MB)\n", $NF, $5 / 1e6}'
