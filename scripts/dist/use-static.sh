#!/usr/bin/env bash
# Part of scripts/dist.sh: uses the static command where there is nothing else, as in an image that is made from scratch: no C library, no
# shell, no other tool; /proc and /dev/null alone, which every container has. What it makes of recordings has to be what the command for
# glibc makes of them, byte for byte.
#
#   scripts/dist/use-static.sh STATIC GNU PROGRAM
#
# STATIC and GNU are the two commands, PROGRAM is a static program that announces `add_42`, and waits if it has an argument.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$0")/../.."

fail() {
    echo "use-static.sh: $*" >&2
    exit 1
}

if [ -z "${JITSCRIBE_IN_NAMESPACE:-}" ]; then
    headers=$(readelf -lW "$1") dynamic=$(readelf -dW "$1")
    if [[ $headers == *INTERP* || $dynamic == *NEEDED* ]]; then fail "$1 is not a static program"; fi
    # Processes of its own, so that /proc shows no others, and mounts. Root has them without a user namespace.
    namespaces=(--mount --pid --fork --kill-child)
    [ "$(id -u)" = 0 ] || namespaces+=(--user --map-root-user)
    if ! unshare "${namespaces[@]}" true; then
        echo "use-static.sh: skipped, as there are no namespaces here: the static command was not tried in an empty root" >&2
        [ -z "${JITSCRIBE_NO_SKIP:-}" ]
        exit
    fi
    # Inside, everybody is root: what the user is outside.
    JITSCRIBE_IN_NAMESPACE=$(id -u) unshare "${namespaces[@]}" "$self" "$@"
    exit
fi

scratch=$(mktemp -d)
trap 'umount "$scratch"/*/proc "$scratch"/*/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT
recordings=(node18-b12 php82-jitdebug32 wasmtime-jitdump)
# A root for each, with the same inputs. That of the command for glibc also has its libraries.
for root in static gnu; do
    mkdir -p "$scratch/$root/"{proc,dev,tmp,out}
    mount -t proc none "$scratch/$root/proc"
    touch "$scratch/$root/dev/null"
    mount --bind /dev/null "$scratch/$root/dev/null"
    for recording in "${recordings[@]}"; do
        tar -C "$scratch/$root" --no-same-owner -xJf "tests/corpus/$recording.tar.xz"
    done
done
install -D "$1" "$scratch/static/bin/jitscribe"
install -D "$2" "$scratch/gnu/bin/jitscribe"
ldd "$2" | grep -o '/[^ ]*' | xargs cp -L --parents -t "$scratch/gnu"
install -D "$3" "$scratch/static/bin/program"

within() {
    env -i "$(command -v chroot)" "$scratch/$1" /bin/jitscribe "${@:2}"
}
for root in static gnu; do
    out=$scratch/$root/out
    for recording in "${recordings[@]}"; do
        for dump in "$scratch/$root/$recording"/*.dump; do
            dump=/$recording/$(basename "$dump")
            # A dump of V8 has what `check` warns of, and fails for.
            within $root check "$dump" >>"$out/$recording.check" 2>&1 || echo "exit $?" >>"$out/$recording.check"
            within $root dump "$dump" >>"$out/$recording.dump" 2>&1
        done
        options=(-q --aux-dir "/$recording")
        within $root inject "${options[@]}" --image-dir "/out/$recording.images" -i "/$recording/g.data" -o "/out/$recording.data"
        within $root inject "${options[@]}" --image-dir "/out/$recording.of-stream" -i - -o - <"$scratch/$root/$recording/g.data" >"$out/$recording.stream"
        within $root report --stdio -i "/out/$recording.data" >"$out/$recording.report"
        within $root report -q -i "/out/$recording.data" -o "/out/$recording.html"
    done
done
diff -r "$scratch/gnu/out" "$scratch/static/out" || fail "the static command makes something else than that for glibc"
find "$scratch/static/out" -name '*.elf' -o -name '*.so' | grep -q . || fail "there are no images: $(find "$scratch/static/out")"

# Its worker reads the code log of a process, of another user where there is one.
other=()
[ "$JITSCRIBE_IN_NAMESPACE" != 0 ] || other=(--userspec 65534:65534)
mkfifo "$scratch/in"
chroot "${other[@]}" "$scratch/static" /bin/program wait <"$scratch/in" >"$scratch/said" &
program=$!
exec 3>"$scratch/in"
for ((waited = 0; waited < 200; waited++)); do
    [ ! -s "$scratch/said" ] || break
    sleep 0.1
done
within static dump -p $program >"$scratch/log" 2>&1
grep -q add_42 "$scratch/log" || fail "dump -p says: $(cat "$scratch/log")"
exec 3>&-
wait $program
echo "use-static.sh: ${#recordings[@]} recordings, same bytes as with glibc; a process was read" >&2
