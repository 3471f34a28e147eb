# Part of scripts/dist.sh: the Debian packages, of what it staged.
# shellcheck shell=bash disable=SC2154

architecture=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
# The project has no address; who distributes packages sets Debian's variables.
maintainer="${DEBFULLNAME:-the jitscribe developers} <${DEBEMAIL:-jitscribe@localhost.localdomain}>"
homepage=https://github.com/jitscribe/jitscribe
date=$(date -R -u -d "@$SOURCE_DATE_EPOCH")
debs=$stage/debs

# The command.
mkdir -p "$debs"
cp -a "$stage/command" "$debs/jitscribe"

# The library, with what gdb runs when a program loads it; and what programs are compiled with.
install_libraries "$debs/libjitscribe-dev" LIBDIR="/usr/lib/$triplet"
lib=usr/lib/$triplet
mkdir -p "$debs/libjitscribe0/$lib"
mv "$debs/libjitscribe-dev/$lib/libjitscribe.so."* "$debs/libjitscribe0/$lib"
chmod 644 "$debs/libjitscribe0/$lib/libjitscribe.so.$version"
install -D -m 644 packaging/libjitscribe-gdb.py "$debs/libjitscribe0/usr/share/gdb/auto-load/$lib/libjitscribe.so.$version-gdb.py"

# What linking with the library means for another package: dpkg-shlibdeps reads these.
mkdir "$debs/libjitscribe0/DEBIAN"
echo "libjitscribe 0 libjitscribe0 (>= $version)" >"$debs/libjitscribe0/DEBIAN/shlibs"
{
    echo 'libjitscribe.so.0 libjitscribe0 #MINVER#'
    # Each symbol since the release whose number its version has; those without, since the first.
    nm -D --with-symbol-versions --defined-only "$debs/libjitscribe0/$lib/libjitscribe.so.$version" | awk '
        { name = $3; node = "Base" }
        split($3, parts, /@+/) == 2 { name = parts[1]; node = parts[2] }
        $2 == "A" { node = name }
        { since = "0.1.0" }
        node ~ /^JITSCRIBE_/ { since = substr(node, 11) ".0" }
        { print " " name "@" node " " since }' | sort
} >"$debs/libjitscribe0/DEBIAN/symbols"
echo 'activate-noawait ldconfig' >"$debs/libjitscribe0/DEBIAN/triggers"

# Documents, and for lintian what it finds and is meant to be so.
for package in jitscribe libjitscribe0 libjitscribe-dev; do
    folder=$debs/$package/usr/share/doc/$package
    mkdir -p "$folder"
    # License texts are indented, and empty lines are dots.
    sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT | tail -n +4 >"$stage/mit"
    sed -e "/^@MIT@\$/{r $stage/mit" -e 'd}' packaging/debian/copyright >"$folder/copyright"
    cp "$stage/THIRD-PARTY.gz" "$folder"
    gzip -9n >"$folder/changelog.gz" <<END
jitscribe ($version) unstable; urgency=medium

  * See $homepage/blob/main/CHANGELOG.md.

 -- $maintainer  $date
END
    if [ -e "packaging/debian/$package.lintian-overrides" ]; then
        install -D -m 644 "packaging/debian/$package.lintian-overrides" "$debs/$package/usr/share/lintian/overrides/$package"
    fi
done
gzip "${compress[@]}" <CHANGELOG.md >"$debs/jitscribe/usr/share/doc/jitscribe/CHANGELOG.md.gz"
cp README.md "$debs/jitscribe/usr/share/doc/jitscribe"

# The packages of shared libraries that a package's files need.
needs() {
    local folder
    folder=$(mktemp -d -p "$stage")
    mkdir "$folder/debian"
    printf 'Source: jitscribe\n\nPackage: %s\nArchitecture: any\n' "$1" >"$folder/debian/control"
    shift
    (cd "$folder" && dpkg-shlibdeps -O "$@" 2>"$folder/said" || { cat "$folder/said" >&2; exit 1; }) | sed -n 's/^shlibs:Depends=//p'
}

# Builds a package: its name, and the fields that it has of its own on the standard input.
package() {
    local folder=$debs/$1
    mkdir -p "$folder/DEBIAN"
    {
        echo "Package: $1"
        echo "Source: jitscribe"
        echo "Version: $version"
        echo "Architecture: $architecture"
        echo "Maintainer: $maintainer"
        echo "Installed-Size: $(du -sk --exclude=DEBIAN "$folder" | cut -f1)"
        echo "Homepage: $homepage"
        echo "Priority: optional"
        cat
    } >"$folder/DEBIAN/control"
    (cd "$folder" && find usr -type f -printf '%p\0' | sort -z | xargs -0 md5sum) >"$folder/DEBIAN/md5sums"
    # Whatever the umask is.
    chmod -R u+rwX,go+rX,go-w "$folder"
    find "$folder/DEBIAN" -type f -exec chmod 644 {} +
    find "$folder" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group "${deb_compress[@]}" --build "$folder" "$dist/$1_${version}_$architecture.deb" >/dev/null
    made+=("$dist/$1_${version}_$architecture.deb")
}

package jitscribe <<END
Section: devel
Depends: $(needs jitscribe "$debs/jitscribe/usr/bin/"* "$debs/jitscribe/usr/lib/jitscribe/"*.so)
Recommends: linux-perf, binutils
Suggests: gdb, valgrind
Description: makes JIT-compiled code visible to perf, gdb, lldb and Valgrind
 The command adds names, source lines, inlined calls, assembly and call stacks
 of code that was compiled at run time to what perf or Valgrind recorded, and
 shows it: in an HTML report, in the terminal, or in other viewers. It reads
 what V8, Java, Erlang, PHP, Python and other runtimes write, and the code logs
 of programs that link libjitscribe.
END
package libjitscribe0 <<END
Section: libs
Multi-Arch: same
Depends: $(needs libjitscribe0 "$debs/libjitscribe0/$lib/libjitscribe.so.$version")
Suggests: jitscribe
Description: library by which JIT compilers report their code
 A language runtime that compiles code reports each function once. Profilers,
 debuggers, unwinders and Valgrind can then show its name, its source lines
 and its frames.
END
package libjitscribe-dev <<END
Section: libdevel
Multi-Arch: same
Depends: libjitscribe0 (= $version)
Suggests: libipt-dev
Description: library by which JIT compilers report their code (development)
 A language runtime that compiles code reports each function once. Profilers,
 debuggers, unwinders and Valgrind can then show its name, its source lines
 and its frames.
 .
 This package has the headers for C and C++, the static library, and files for
 pkg-config and CMake. For tools that decode processor traces, it has the
 static library jitscribe_codes, which has the machine code of a jitdump, and
 the callback by which libipt reads it.
END
