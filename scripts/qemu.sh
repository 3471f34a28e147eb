#!/usr/bin/env bash
# Puts QEMU's user mode of Debian 13 into DIR, for x86-64, AArch64 and RISC-V.
#
#   scripts/qemu.sh DIR    then: DIR/usr/bin/qemu-aarch64 …
#
# That of Debian 12 announces no code. It is static, and these three of its programs have 45 of 465 MB: 71 MB are downloaded.
set -euo pipefail

if [ $# != 1 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
programs=(qemu-x86_64 qemu-aarch64 qemu-riscv64)
missing=
for program in "${programs[@]}"; do
    [ -x "$1/usr/bin/$program" ] || missing=yes
done
[ -n "$missing" ] || exit 0

# apt checks the archive's signature, with settings and lists of its own.
unpacked=$(mktemp -d)
mkdir -p "$unpacked/lists/partial" "$unpacked/cache/archives/partial" "$1/usr/bin"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$unpacked/sources.list"
trixie=(-o Dir::Etc::sourcelist="$unpacked/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$unpacked/lists" -o Dir::Cache="$unpacked/cache" -o APT::Sandbox::User="$(id -un)")
apt-get "${trixie[@]}" update -q
(cd "$unpacked" && apt-get "${trixie[@]}" download -q qemu-user)
dpkg --fsys-tarfile "$unpacked"/qemu-user_*.deb | tar -x -C "$unpacked" "${programs[@]/#/./usr/bin/}"
for program in "${programs[@]}"; do
    mv "$unpacked/usr/bin/$program" "$1/usr/bin/"
done
rm -r "$unpacked"
