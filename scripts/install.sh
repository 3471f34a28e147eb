#!/bin/sh
# Installs jitscribe from an unpacked archive of a release, in which this script is. Needs a shell and the tools of POSIX.
#
#   ./install.sh [--prefix FOLDER]                 default: /usr/local for root, ~/.local for others
#   ./install.sh --uninstall [--prefix FOLDER]
#   ./install.sh --check                           only says whether what is in the archive runs here
#
# DESTDIR is put before every path, for those who make packages.
set -eu

say() {
    printf 'install.sh: %s\n' "$*"
}
fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}
usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0"
}

prefix=
action=install
while [ $# -gt 0 ]; do
    case $1 in
        --prefix)
            [ $# -gt 1 ] || fail "--prefix needs a folder"
            prefix=$2
            shift
            ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --uninstall) action=uninstall ;;
        --check) action=check ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
    shift
done
if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then
        prefix=/usr/local
    else
        [ -n "${HOME:-}" ] || fail "no HOME: name a folder with --prefix"
        prefix=$HOME/.local
    fi
fi
# The list of installed files has a path in each line.
case $prefix in
    *'
'*) fail "the folder has a line end in its name" ;;
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac
here=$(cd "$(dirname "$0")" && pwd -P)
root=${DESTDIR:-}$prefix
list=$root/share/jitscribe/installed

# The folders that the files are in and that are empty now. Those that were there before, and are in use, stay.
remove_folders() {
    sed 's|/[^/]*$||' "$1" | LC_ALL=C sort -ru | while read -r folder; do
        while [ "$folder" != . ] && rmdir "$root/$folder" 2>/dev/null; do
            case $folder in
                */*) folder=${folder%/*} ;;
                *) folder=. ;;
            esac
        done
    done
    rmdir "$root" 2>/dev/null || true
}

# Removes what the list of an installation names.
remove_installed() {
    files=$(mktemp)
    cp "$list" "$files"
    while IFS= read -r file; do
        case /$file/ in
            */../*) fail "$list names a file outside of $prefix: $file" ;;
        esac
        rm -f "$root/$file"
    done <"$files"
    rm -f "$list"
    echo share/jitscribe/installed >>"$files"
    remove_folders "$files"
    removed=$(($(wc -l <"$files") - 1))
    rm -f "$files"
}

if [ "$action" = uninstall ]; then
    [ -f "$list" ] || fail "nothing is installed in $prefix by this script: there is no $list"
    remove_installed
    say "removed $removed files from $prefix"
    exit 0
fi

# Line by line: NAME VALUE. It says what the programs of the archive need.
made=$here/share/jitscribe/made-for
[ -f "$made" ] || fail "$here is not an unpacked archive of jitscribe: there is no share/jitscribe/made-for"
value() {
    sed -n "s/^$1 //p" "$made"
}
system=$(uname -s)
[ "$system" = Linux ] || fail "the programs in this archive are for Linux, and this is $system"
machine=$(uname -m)
[ "$machine" = "$(value machine)" ] ||
    fail "the programs in this archive are for $(value machine), and this machine is $machine"
# An archive with the static command alone needs no C library.
needed=$(value glibc)
if [ -n "$needed" ]; then
    version=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || version=
    [ -n "$version" ] ||
        fail "the programs in this archive need glibc $needed, which this system does not have. The archive whose name ends with -musl needs none"
    lowest=$(printf '%s\n%s\n' "$needed" "$version" | sort -t . -k 1,1n -k 2,2n | head -n 1)
    [ "$lowest" = "$needed" ] ||
        fail "the programs in this archive need glibc $needed, and this system has $version. The archive whose name ends with -musl needs none"
fi
runs=$("$here/bin/jitscribe" --version) || fail "$here/bin/jitscribe does not run here (is the folder mounted with noexec?)"
if [ "$action" = check ]; then
    say "$runs runs here"
    exit 0
fi

mkdir -p "$root" || fail "cannot make $root: name another folder with --prefix"
[ -w "$root" ] || fail "$prefix cannot be written: name another folder with --prefix"
# Files of an earlier version that this one does not have.
if [ -f "$list" ]; then
    remove_installed
    say "removed the $removed files of an earlier installation"
fi
new=$(mktemp)
trap 'rm -f "$new"' EXIT
(cd "$here" && find bin include lib share ! -type d 2>/dev/null) | LC_ALL=C sort >"$new"
# The list comes first, so that an interrupted installation can be removed. Files are replaced by new ones, as a running program has the old one open.
mkdir -p "$root/share/jitscribe"
cp "$new" "$list"
while IFS= read -r file; do
    mkdir -p "$root/$(dirname "$file")"
    rm -f "$root/$file"
    cp -P -p "$here/$file" "$root/$file"
done <"$new"
say "installed $(wc -l <"$new" | tr -d ' ') files ($runs) in $prefix"
say "to remove them: $here/install.sh --uninstall --prefix $prefix"

# What the user has to do for them to be found.
case :${PATH:-}: in
    *:"$prefix/bin":*) ;;
    *) say "$prefix/bin is not on the PATH: PATH=$prefix/bin:\$PATH" ;;
esac
if [ -f "$root/lib/pkgconfig/jitscribe.pc" ]; then
    case $prefix in
        /usr | /usr/local)
            # A package has the loader's list updated where it is installed.
            if [ "$(id -u)" = 0 ] && [ -z "${DESTDIR:-}" ] && command -v ldconfig >/dev/null 2>&1; then
                ldconfig
                say "updated the dynamic loader's list (ldconfig)"
            fi
            ;;
        *)
            say "compilers find the library with PKG_CONFIG_PATH=$prefix/lib/pkgconfig, or with -DCMAKE_PREFIX_PATH=$prefix for CMake;"
            say "programs that are linked with the shared library find it with LD_LIBRARY_PATH=$prefix/lib, or if they are linked with -Wl,-rpath,$prefix/lib"
            ;;
    esac
fi
