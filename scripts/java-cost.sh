#!/usr/bin/env bash
# Measures what sampling costs a JVM: the Java compiler at work (benches/java/Load.java), without a profiler and with several, by turns. Prints the
# table of docs/performance.md: medians, and the median of the ratios to the run without a profiler in the same round.
#
#   scripts/java-cost.sh [ROUNDS] [STEPS]           default: 7 rounds of 60 steps
#   ASYNC_PROFILER=libasyncProfiler.so scripts/java-cost.sh
#   VARIANTS="0 4" scripts/java-cost.sh 15 20       only these rows of the table, of which the first has to be 0
#
# At the end stands what each thread of a JVM with the agent takes, which differs less between runs than the whole.
#
# "JVM" is the processor time of the JVM and what it starts, measured by time(1) as the profilers' command; "all" includes the profiler, and with
# jitscribe what is done at the end. Run it on an idle machine: compilers in a JVM decide by the clock.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

rounds=${1:-7}
steps=${2:-60}
frequency=499
for tool in perf java javac python3 /usr/bin/time; do
    command -v "$tool" >/dev/null || {
        echo "java-cost.sh: $tool is missing: run scripts/setup.sh" >&2
        exit 1
    }
done
cargo build --quiet --release --locked -p jitscribe-cli -p jitscribe-jvmti -p jitscribe-preload
release=$(realpath "${CARGO_TARGET_DIR:-target}/release")
agent=$release/libjitscribe_jvmti.so
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
javac -d "$dir" benches/java/Load.java tests/workloads/Tiers.java

jvm=(/usr/bin/time -a -o "$dir/jvm" -f "%U %S" java)
load=(-cp "$dir" Load javac "$steps")
perf=(perf record --quiet -F "$frequency" -k mono -o "$dir/perf.data")
jitscribe=("$release/jitscribe" record -F "$frequency" --force -o "$dir/it.data")
names=(none "the agent with \`interpreted\`, no samples" "\`perf record\`, no stacks, no agent" "\`perf record --call-graph dwarf\`, no agent"
    "\`jitscribe record\`" "\`jitscribe record --call-graph dwarf\`")
[ -z "${ASYNC_PROFILER:-}" ] || names+=("async-profiler, \`event=cpu\`, JFR")

# What a variant takes: one line "JVM ALL" in seconds.
run() {
    case $1 in
        0) set -- "${jvm[@]}" "${load[@]}" ;;
        1) set -- "${jvm[@]}" "-agentpath:$agent=interpreted" "${load[@]}" ;;
        2) set -- "${perf[@]}" -- "${jvm[@]}" "${load[@]}" ;;
        3) set -- "${perf[@]}" --call-graph dwarf,8192 -- "${jvm[@]}" "${load[@]}" ;;
        4) set -- "${jitscribe[@]}" -- "${jvm[@]}" "${load[@]}" ;;
        5) set -- "${jitscribe[@]}" --call-graph dwarf -- "${jvm[@]}" "${load[@]}" ;;
        6) set -- "${jvm[@]}" "-agentpath:$ASYNC_PROFILER=start,event=cpu,interval=$((1000000000 / frequency))ns,file=$dir/it.jfr" "${load[@]}" ;;
    esac
    : >"$dir/jvm"
    : >"$dir/all"
    # The compiled workload waits until its input ends.
    JITSCRIBE_JAVA_AGENT=$agent /usr/bin/time -a -o "$dir/all" -f "%U %S" "$@" </dev/null >"$dir/out" 2>&1 || {
        cat "$dir/out" >&2
        exit 1
    }
    [ "$(grep -c '^[0-9]*$' "$dir/out")" -ge "$steps" ] || {
        echo "java-cost.sh: the workload did not finish: $*" >&2
        cat "$dir/out" >&2
        exit 1
    }
    echo "$(tail -n 1 "$dir/jvm") $(tail -n 1 "$dir/all")"
}

for ((round = 1; round <= rounds; round++)); do
    for variant in ${VARIANTS:-${!names[@]}}; do
        [ ! -t 2 ] || printf '\rround %d of %d: %s\033[K' "$round" "$rounds" "${names[variant]}" >&2
        echo "$variant $(run "$variant")" >>"$dir/times"
    done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

java -version 2>&1 | head -n 1
printf '%s; %d rounds; %s processors; load %s\n\n' "$(perf --version)" "$rounds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
python3 - "$dir/times" "${names[@]}" <<'END'
import statistics
import sys

rows = {}
for line in open(sys.argv[1]):
    variant, *times = line.split()
    jvm_user, jvm_system, all_user, all_system = map(float, times)
    rows.setdefault(int(variant), []).append((jvm_user + jvm_system, all_user + all_system))
print("| | JVM | | all | |\n|---|---:|---:|---:|---:|")
for variant, name in enumerate(sys.argv[2:]):
    if variant not in rows:
        continue
    cells = [name]
    for column in range(2):
        times = [row[column] for row in rows[variant]]
        ratios = [time / none[column] for time, none in zip(times, rows[0])]
        cells += [f"{statistics.median(times):.2f} s", f"{statistics.median(ratios):.2f}"]
    print("| " + " | ".join(cells) + " |")
END

python3 - java "-agentpath:$agent=interpreted" "${load[@]}" <<'END'
import collections
import os
import subprocess
import sys
import time

jvm = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
tasks, last = f"/proc/{jvm.pid}/task", {}
while jvm.poll() is None:
    try:
        for thread in os.listdir(tasks):
            with open(f"{tasks}/{thread}/comm") as name, open(f"{tasks}/{thread}/schedstat") as times:
                last[thread] = name.read().strip(), int(times.read().split()[0])
    except OSError:
        pass  # It ended.
    time.sleep(0.1)
threads = collections.Counter()
for name, took in last.values():
    threads[name] += took
whole = sum(threads.values())
print(f"\n| Of {whole / 1e9:.1f} s of the JVM's threads | | |\n|---|---:|---:|")
for name, what in ("Service Thread", "reports of compiled methods to the agent"), ("jitscribe-java", "the agent's thread"):
    print(f"| {name}: {what} | {threads[name] / 1e9:.2f} s | {100 * threads[name] / whole:.1f} % |")
END
