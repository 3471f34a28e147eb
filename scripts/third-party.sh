#!/usr/bin/env bash
# Prints the licenses and notices of the crates of others that are linked into these packages of the workspace.
#
#   scripts/third-party.sh PACKAGE…
#
# A license that only a crate's manifest names, and of which it has no file, is named here too.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

if [ $# = 0 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
host=$(rustc -vV | sed -n 's/^host: //p')
crates=$(cargo tree --quiet --locked --edges normal --prefix none --target "$host" --format '{p}|{l}' "${@/#/--package=}" |
    sed -e 's/ (\*)$//' -e '/ (\//d' -e '/^$/d' -e 's/ (proc-macro)//' | sort -u)
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
cat <<END
These programs and libraries contain the following crates, and the standard library of Rust, which is copyright The Rust Project
Developers (see https://thanks.rust-lang.org) and licensed under MIT or Apache-2.0.

END
missing=0
while IFS='|' read -r crate license; do
    folder=$(find "$sources" -mindepth 2 -maxdepth 2 -name "${crate/ v/-}" -print -quit)
    if [ -z "$folder" ]; then
        echo "third-party.sh: the source of $crate is not in $sources" >&2
        missing=1
        continue
    fi
    printf '=== %s: %s\n' "$crate" "$license"
    find "$folder" -maxdepth 2 -type f \
        \( -iname 'license*' -o -iname 'licence*' -o -iname 'copying*' -o -iname 'copyright*' -o -iname 'notice*' -o -iname 'unlicense*' \) \
        ! -name '*.rs' ! -name '*.toml' | LC_ALL=C sort | while read -r file; do
        printf -- '--- %s\n' "${file#"$folder/"}"
        cat "$file"
        printf '\n'
    done
done <<<"$crates"
exit $missing
