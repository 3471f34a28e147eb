#!/usr/bin/env bash
# Puts perf 6.12, Python 3.13, OpenJDK 21, gdb 16, lldb 19 and Valgrind 3.24 of Debian 13 into DIR, next to what Debian 12 has
# installed.
#
#   scripts/trixie.sh DIR    then: DIR/run/perf …, DIR/run/python3.13 …, DIR/run/jdk-21/bin/java …, DIR/run/gdb …, DIR/run/lldb …
#                            and DIR/run/valgrind …
#
# The packages are only unpacked, and the programs are started through their own dynamic linker: no chroot,
# nothing mounted, and the host's files stay where a recording says they are. About 60 s and 900 MB.
set -euo pipefail

if [ $# != 1 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)

works() {
    "$dir/run/perf" --version >/dev/null 2>&1 && "$dir/run/python3.13" -c '' >/dev/null 2>&1 &&
        "$dir/run/jdk-21/bin/java" -version >/dev/null 2>&1 && "$dir/run/gdb" --version >/dev/null 2>&1 &&
        "$dir/run/lldb" --version >/dev/null 2>&1
}
valgrind_works() {
    "$dir/run/valgrind" -q --tool=callgrind --callgrind-out-file=/dev/null true 2>/dev/null &&
        [[ $("$dir/run/callgrind_annotate" --version 2>&1) == callgrind_annotate-* ]]
}
works && valgrind_works && exit 0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# The mirror that this machine's own packages come from has Debian 13 too.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)

# In a folder of its own, so that a folder from before is only added to, and may be in use.
if ! valgrind_works; then
    as_root rm -rf "$dir/new-valgrind"
    as_root mmdebstrap --quiet --variant=extract --mode=root --include=valgrind trixie "$dir/new-valgrind" "$mirror"
    as_root rm -rf "$dir/valgrind"
    as_root mkdir "$dir/valgrind"
    # The tools are static, and the launcher runs with the host's C library. As the kernel says which program it is, and tools
    # start it again for children, it is not started through a dynamic linker.
    for program in valgrind.bin callgrind_annotate ms_print; do
        as_root mv "$dir/new-valgrind/usr/bin/$program" "$dir/valgrind/"
    done
    as_root mv "$dir/new-valgrind/usr/libexec/valgrind" "$dir/valgrind/tools"
    as_root rm -rf "$dir/new-valgrind"
    mkdir -p "$dir/run"
    cat >"$dir/run/valgrind" <<RUN
#!/bin/sh
# Written by scripts/trixie.sh.
export VALGRIND_LIB="$dir/valgrind/tools"
exec "$dir/valgrind/valgrind.bin" "\$@"
RUN
    chmod +x "$dir/run/valgrind"
    ln -sfn ../valgrind/callgrind_annotate ../valgrind/ms_print "$dir/run/"
    valgrind_works || {
        echo "scripts/trixie.sh: the Valgrind unpacked into $dir does not start" >&2
        exit 1
    }
fi
works && exit 0

# What is there stays in use until the new one is whole.
as_root rm -rf "$dir/new"
as_root mmdebstrap --quiet --variant=extract --mode=root \
    --include=linux-perf,python3.13,openjdk-21-jdk-headless,gdb,lldb trixie "$dir/new" "$mirror"

root=$dir/root
lib=$root/usr/lib/x86_64-linux-gnu
loader=$lib/ld-linux-x86-64.so.2

# Java looks at what the kernel says its program is, and starts others of its own: so its programs themselves say which
# dynamic linker and libraries they want.
jdk=usr/lib/jvm/java-21-openjdk-amd64
for program in "$dir/new/$jdk"/bin/* "$dir/new/$jdk/lib/jspawnhelper"; do
    # shellcheck disable=SC2016
    as_root patchelf --set-interpreter "$loader" --force-rpath --set-rpath '$ORIGIN:$ORIGIN/../lib:'"$lib" "$program"
done
# Its settings would be the host's.
find "$dir/new/$jdk" -type l -lname '/etc/*' | while read -r link; do
    as_root ln -sfn "$root$(readlink "$link")" "$link"
done

as_root rm -rf "$root"
as_root mv "$dir/new" "$root"

mkdir -p "$dir/run"
ln -sfn "$root/$jdk" "$dir/run/jdk-21"
for program in perf python3.13; do
    cat >"$dir/run/$program" <<RUN
#!/bin/sh
# Written by scripts/trixie.sh.
export PERF_EXEC_PATH="$root/usr/libexec/perf-core"
$([ $program = perf ] || echo "export PYTHONHOME=\"$root/usr\"")
exec "$loader" --library-path "$lib" "$root/usr/bin/$program" "\$@"
RUN
    chmod +x "$dir/run/$program"
done

# What gdb starts is the host's, and so are its Python and the debug symbols of its libraries.
llvm=$root/usr/lib/llvm-19
debugger() {
    cat >"$dir/run/$1" <<RUN
#!/bin/sh
# Written by scripts/trixie.sh.
export LLDB_DEBUGSERVER_PATH="$dir/run/lldb-server"
$([ "$1" = lldb-server ] || echo "export PYTHONHOME=\"$root/usr\"")
exec "$loader" --library-path "$lib:$llvm/lib" $(printf '"%s" ' "${@:2}") "\$@"
RUN
    chmod +x "$dir/run/$1"
}
debugger gdb "$root/usr/bin/gdb" "--data-directory=$root/usr/share/gdb" -iex "unset environment PYTHONHOME" \
    -iex "set debug-file-directory /usr/lib/debug"
debugger lldb "$llvm/bin/lldb"
debugger lldb-server "$llvm/bin/lldb-server"

works || {
    echo "scripts/trixie.sh: the programs unpacked into $dir do not start" >&2
    exit 1
}
