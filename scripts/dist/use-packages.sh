#!/bin/sh
# Part of scripts/test-packages.sh: installs the packages that are beside it in the Debian that it runs in, and uses them.
set -eu
cd "$(dirname "$0")"

fail() {
    echo "use-packages.sh: $*" >&2
    exit 1
}
# A file has a line of this pattern.
has() {
    grep -Eq -- "$2" "$1" || {
        cat "$1" >&2
        fail "$1 has no line like $2"
    }
}

apt-get install -q -y --no-install-recommends ./*.deb >apt.log 2>&1 || {
    cat apt.log >&2
    fail "apt does not install the packages"
}
for package in jitscribe libjitscribe0 libjitscribe-dev; do
    [ -z "$(dpkg --verify "$package")" ] || fail "files of $package are not as they were packed: $(dpkg --verify "$package")"
done
jitscribe --version
[ -f /usr/share/man/man1/jitscribe-inject.1.gz ] || fail "no man page for inject"

# Programs are linked as pkg-config says, with the shared library, with the static one, and without any shared one.
words=$(pkg-config --cflags --libs jitscribe)
gcc -g -o shared tinyjit.c $words
gcc -g -o static tinyjit.c $(pkg-config --static --cflags --libs jitscribe | sed 's/-ljitscribe/-l:libjitscribe.a/')
gcc -g -static -o whole tinyjit.c $(pkg-config --static --cflags --libs jitscribe) 2>whole.log
# And as CMake says.
mkdir cmake
cat >cmake/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(jitscribe REQUIRED CONFIG)
add_executable(cmake-shared ../tinyjit.c)
target_link_libraries(cmake-shared jitscribe::jitscribe)
add_executable(cmake-static ../tinyjit.c)
target_link_libraries(cmake-static jitscribe::static)
END
cmake -S cmake -B cmake/built >cmake.log
cmake --build cmake/built >>cmake.log
cp cmake/built/cmake-* .
for program in shared cmake-shared; do
    readelf -d $program | grep -q 'NEEDED.*\[libjitscribe.so.0\]' || fail "$program does not need the shared library"
done
for program in static cmake-static whole; do
    ! readelf -d $program | grep -q 'NEEDED.*jitscribe' || fail "$program needs the shared library"
done
! readelf -l whole | grep -q INTERP || fail "whole is not static"

# What they announce is in their dumps, which the command reads.
for program in shared static whole cmake-shared cmake-static; do
    rm -rf dumps
    mkdir -m 700 dumps
    JITSCRIBE=jitdump JITSCRIBE_DIR=$PWD/dumps ./$program >out
    has out '^43 44 '
    jitscribe check dumps/jit-*.dump >check.log 2>&1 || {
        cat check.log >&2
        fail "the dump of $program is not valid"
    }
    jitscribe dump dumps/jit-*.dump >dump.log
    has dump.log 'add_42'
    echo "$program: $(grep -c add_42 dump.log) lines about add_42"
done

# The library for decoders finds the code in a dump, at the address at which the program ran it last.
gcc -o code_at code_at.c $(pkg-config --cflags --libs jitscribe-codes)
cp out announced
./code_at dumps/jit-*.dump "$(sed 's/.* 0x//' announced)" >found
has found '^add_42: 12 bytes at [0-9a-f]*: 55 48 89 e5 8d 87 2a 00 00 00 5d c3$'

# gdb starts the script by itself when a program loads the library, and so knows its code.
cat >commands <<'END'
set debuginfod enabled off
set breakpoint pending on
break add_42
run
backtrace
jitscribe info
kill
END
gdb -q -nx -batch -x commands ./shared >gdb.log 2>&1
has gdb.log '^#0  add_42 \(\) at add\.tiny:2'
has gdb.log ' in main \('
has gdb.log '^jitscribe: 1 codes in [01] symbol files, from 1 code logs'
# So it does for a process that runs.
mkfifo in
./shared wait <in >out &
pid=$!
exec 3>in
while [ ! -s out ]; do sleep 0.05; done
jitscribe dump -p $pid >dump.log
has dump.log 'add_42'
gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'jitscribe info' -p $pid >gdb.log 2>&1
has gdb.log '^jitscribe: 1 codes in 1 symbol files, from 1 code logs'
exec 3>&-
wait $pid
# Without the package of the command, it says nothing, and gdb has what the library registers.
mv /usr/share/jitscribe/gdb.py gdb.py
gdb -q -nx -batch -x commands ./shared >gdb.log 2>&1 || true
mv gdb.py /usr/share/jitscribe/gdb.py
has gdb.log '^#0  add_42 \(\) at add\.tiny:2'
has gdb.log 'Undefined command: "jitscribe"'

# Nothing stays.
dpkg --purge jitscribe libjitscribe-dev libjitscribe0 >apt.log 2>&1
left=$(find / -xdev -path /use -prune -o -path /proc -prune -o -path /sys -prune -o -path /var/log -prune -o -path /var/lib/apt -prune -o -path /var/cache -prune -o -iname '*jitscribe*' -print)
[ -z "$left" ] || fail "after the packages are removed, there is still $left"
if ./shared >/dev/null 2>&1; then fail "the shared library is still found"; fi
./whole >/dev/null

# The archive's script needs no Python: there is none here.
! command -v python3 || fail "there is a python3"
tar -xzf jitscribe-*.tar.gz
jitscribe-*/install.sh --prefix /opt/jitscribe
PKG_CONFIG_PATH=/opt/jitscribe/lib/pkgconfig
export PKG_CONFIG_PATH
gcc -o moved tinyjit.c $(pkg-config --cflags --libs jitscribe)
LD_LIBRARY_PATH=/opt/jitscribe/lib ./moved >out
has out '^43 44 '
gcc -o code_at code_at.c $(pkg-config --cflags --libs jitscribe-codes)
./code_at dumps/jit-*.dump "$(sed 's/.* 0x//' announced)" >found
has found '^add_42: 12 bytes at '
cmake -S cmake -B cmake/again -DCMAKE_PREFIX_PATH=/opt/jitscribe >cmake.log
cmake --build cmake/again >>cmake.log
cmake/again/cmake-static >out
has out '^43 44 '
/opt/jitscribe/bin/jitscribe run -- /opt/jitscribe/bin/demo-jit --phase 10 --quiet
jitscribe-*/install.sh --uninstall --prefix /opt/jitscribe
[ ! -e /opt/jitscribe ] || fail "$(find /opt/jitscribe) is still there"
echo "use-packages.sh: all is so"
