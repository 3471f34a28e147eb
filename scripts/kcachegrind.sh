#!/usr/bin/env bash
# Makes docs/kcachegrind-*.png: KCachegrind with profiles that `jitscribe` gave names to.
#
#   scripts/kcachegrind.sh JITSCRIBE [DIR]    JITSCRIBE is the command, DIR takes the pictures (default: docs)
#
# Installs what is missing: KCachegrind with all of its libraries (some 300 MB), and an X server without a screen.
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
jitscribe=$(realpath "$1")
pictures=$(realpath "${2:-$(dirname "$0")/../docs}")

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}
for tool in kcachegrind Xvfb xdotool import optipng dbus-run-session rakudo-m node valgrind; do
    if ! command -v $tool >/dev/null; then
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            kcachegrind xvfb xdotool imagemagick optipng dbus-daemon fonts-dejavu-core rakudo nodejs valgrind
        break
    fi
done

# Names of JavaScript's functions have the folder in them.
work=/tmp/demo
mkdir -m 700 $work
running=()
finish() {
    for pid in "${running[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
cd "$work"

# The case of KDE's bug 492835. MoarVM writes a perf map, which has no code; its names have file and line.
cat >collatz.raku <<'RAKU'
sub collatz($start) {
    my $n = $start;
    my $steps = 0;
    while $n != 1 {
        $n = $n %% 2 ?? $n div 2 !! 3 * $n + 1;
        $steps++;
    }
    $steps
}

say (1..1500).map({ collatz($_) }).max;
RAKU
MVM_SPESH_BLOCKING=1 MVM_JIT_PERF_MAP=1 valgrind -q --tool=callgrind --dump-instr=yes --collect-jumps=yes \
    --smc-check=all-non-file --callgrind-out-file=rakudo.out rakudo-m collatz.raku
"$jitscribe" callgrind rakudo.out
rm -f "/tmp/perf-$(sed -n 's/^pid: //p' rakudo.out | head -n 1).map"

# V8 writes a jitdump, which has code and lines as well.
cat >spin.js <<'JS'
function mix(n) {
    return n & 1 ? n * 3 + 1 : n >> 1;
}
function steps(n) {
    let count = 0;
    while (n > 1) {
        n = mix(n);
        count += 1;
    }
    return count;
}
function longest(limit) {
    let best = 0;
    for (let n = 1; n < limit; n++) {
        best = Math.max(best, steps(n));
    }
    return best;
}
console.log([1, 2, 3, 4].map(() => longest(4000)));
JS
# Inlined into one another there would be one function to see.
"$jitscribe" record --tool=callgrind -o node.out -- node --single-threaded --max-inlined-bytecode-size=0 spin.js

export HOME=$work/home XDG_RUNTIME_DIR=$work/home QT_QPA_PLATFORM=xcb
mkdir -p -m 700 "$HOME/.config"
printf '[TipOfDay]\nRunOnStart=false\n' >"$HOME/.config/kcachegrindrc"
display=77
while [ -e "/tmp/.X11-unix/X$display" ]; do display=$((display + 1)); done
export DISPLAY=:$display
Xvfb "$DISPLAY" -screen 0 1180x640x24 >/dev/null 2>&1 &
running+=($!)
until [ -e "/tmp/.X11-unix/X$display" ]; do sleep 0.2; done

click() {
    xdotool mousemove "$1" "$2" click 1
    sleep 1
}

# picture PROFILE FUNCTION NAME [X Y]...: looks for the function, clicks at these places, and takes the picture.
picture() {
    local profile=$1 function=$2 name=$3
    shift 3
    dbus-run-session -- kcachegrind "$profile" >/dev/null 2>&1 &
    local pid=$!
    running+=($pid)
    local window=
    until [ -n "$window" ]; do
        sleep 1
        window=$(xdotool search --onlyvisible --class kcachegrind 2>/dev/null | head -n 1) || true
    done
    # The profile is read by now, or nearly so.
    sleep 8
    xdotool windowmove "$window" 0 0 windowsize "$window" 1180 640
    sleep 2
    click 130 89
    xdotool type --delay 60 "$function"
    sleep 2
    xdotool key Return
    sleep 2
    while [ $# -gt 0 ]; do
        click "$1" "$2"
        shift 2
    done
    sleep 3
    import -window root "$work/$name.png"
    convert "$work/$name.png" +dither -colors 64 "$pictures/$name.png"
    optipng -quiet "$pictures/$name.png"
    kill $pid
    wait $pid 2>/dev/null || true
    ls -l "$pictures/$name.png"
}

picture rakudo.out.jitted 'collatz' kcachegrind-rakudo 742 99
picture "$(ls node.out.[0-9]* | grep -v '\.so$' | head -n 1)" 'steps' kcachegrind-node 390 38 840 597
