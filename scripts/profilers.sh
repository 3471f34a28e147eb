#!/bin/sh
# Compares the ten functions with the most samples with those that other profilers find: V8's own, the JDK's Flight Recorder, py-spy, Erlang's stacks.
# Usage: scripts/profilers.sh [--runs N] [PROGRAM...]
# Needs perf, node with npm, a JDK, Elixir, Python 3.13 as `python3.13` or in $PYTHON, and Debian's libh2-java and liblucene4.10-java. The table is in
# docs/accuracy.md.
set -eu
cd "$(dirname "$0")/.."

for needed in perf node npm javac jfr elixir "${PYTHON:-python3.13}"; do
    command -v "$needed" > /dev/null || { echo "$0: $needed is missing" >&2; exit 1; }
done
for jar in h2 lucene-core-4.10.4; do
    [ -e "/usr/share/java/$jar.jar" ] || { echo "$0: apt-get install libh2-java liblucene4.10-java" >&2; exit 1; }
done

cargo build --release --locked -p jitscribe-cli -p jitscribe-jvmti
inputs="$PWD/target/profilers"
mkdir -p "$inputs"
npm install --silent --no-fund --no-audit --prefix "$inputs" terser@5.44 three@0.170 typescript@5.9 @types/three@0.170 @types/node@22 >&2
echo '{"compilerOptions": {"noEmit": true, "skipLibCheck": false, "module": "nodenext", "types": ["node", "three"]}, "files": ["box.ts"]}' > "$inputs/tsconfig.json"
echo 'import * as three from "three"; export const box: three.Box3 = new three.Box3();' > "$inputs/box.ts"
[ -x "$inputs/venv/bin/py-spy" ] || "${PYTHON:-python3.13}" -m venv "$inputs/venv"
"$inputs/venv/bin/pip" install --quiet pylint==3.3.7 py-spy==0.4.1 >&2
javac -d "$inputs" -cp "/usr/share/java/h2.jar:$(printf '%s:' /usr/share/java/lucene-*-4.10.4.jar)" scripts/profilers/*.java
exec python3 scripts/profilers/compare.py --jitscribe "$PWD/target/release/jitscribe" --inputs "$inputs" "$@"
