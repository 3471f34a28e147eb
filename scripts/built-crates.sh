#!/usr/bin/env bash
# Keeps the compiled registry crates of a workspace beside the clones, so that the next clean clone compiles only the project's own crates. Called by
# scripts/test.sh. A missing or damaged cache costs only time: cargo compiles what it does not find.
#
#   scripts/built-crates.sh restore WORKSPACE TARGET    before a build: fills TARGET/debug, unless there is one
#   scripts/built-crates.sh save WORKSPACE TARGET       after a build: keeps what is not the project's own
#
# A set of crates belongs to a compiler, the crates of a lock file, and the features and profiles in a manifest. The newest six sets are kept in JITSCRIBE_CACHE/crates.
set -euo pipefail
[ $# = 3 ] || {
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
action=$1
cd "$2"
built=$3/debug
sets=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}/crates
key=$({
    rustc -vV
    # Only crates of a registry have a source.
    awk -v RS= '/\nsource = /' Cargo.lock
    sed -n '/^\[workspace.dependencies\]/,/^$/p; /^\[profile/,/^$/p' Cargo.toml
    echo "${RUSTFLAGS:-}"
} | sha256sum | cut -c1-16)

case $action in
    restore)
        if [ -d "$sets/$key" ] && [ ! -e "$built" ]; then
            mkdir -p "$(dirname "$built")"
            # Modification times are kept: cargo compares them.
            cp -a "$sets/$key" "$built.$$"
            mv "$built.$$" "$built"
            echo "built-crates.sh: registry crates from $sets/$key"
        fi
        ;;
    save)
        [ ! -d "$sets/$key" ] || exit 0
        mkdir -p "$sets" 2>/dev/null && [ -w "$sets" ] || {
            echo "built-crates.sh: nothing is kept, as $sets cannot be written"
            exit 0
        }
        new=$(mktemp -d "$sets/.new-XXXXXX")
        cargo metadata --format-version 1 --locked | python3 -c '
import json, os, re, shutil, sys

built, new = sys.argv[1:]
own, others = set(), set()
for package in json.load(sys.stdin)["packages"]:
    if package["source"]:
        others.add(package["name"])
    else:
        own.add(package["name"])
        own.update(target["name"] for target in package["targets"])
# One of our benchmarks is named like a registry crate: without that crate, all that depend on it would be compiled again.
own -= others
own |= {name.replace("-", "_") for name in own}


def is_own(name):
    """Whether a file or folder NAME-HASH, libNAME-HASH.EXTENSION or build_script_NAME-HASH is of the workspace."""
    stem = re.sub(r"-[0-9a-f]{16}.*$", "", name)
    return stem in own or stem.removeprefix("lib") in own


for folder in ".fingerprint", "build", "deps":
    os.makedirs(os.path.join(new, folder))
    for name in os.listdir(os.path.join(built, folder)):
        path, to = os.path.join(built, folder, name), os.path.join(new, folder, name)
        if is_own(name):
            continue
        if os.path.isdir(path):
            shutil.copytree(path, to, symlinks=True)
        else:
            shutil.copy2(path, to)
' "$built" "$new"
        mv -T "$new" "$sets/$key" 2>/dev/null || rm -rf "$new"
        # shellcheck disable=SC2012 # the names are ours
        ls -t "$sets" | tail -n +7 | while read -r old; do rm -rf "${sets:?}/$old"; done
        echo "built-crates.sh: registry crates are kept in $sets/$key ($(du -sh "$sets/$key" | cut -f1))"
        ;;
esac
