#!/bin/sh
# Compares what jitscribe shows of programs with what others find: sample by sample with the runtimes' own tables of code, then in runs of their own with
# other profilers (V8's own, the JDK's Flight Recorder, py-spy, Erlang's stacks, Excimer).
# Usage: scripts/profilers.sh [--runs N] [PROGRAM...]
# --runs 0 compares with the tables only. Needs perf, node with npm, a JDK, Elixir, PHP, Python 3.13 as `python3.13` or in $PYTHON, and Debian's libh2-java,
# liblucene4.10-java, php-twig and php-excimer. The results are in docs/accuracy.md.
set -eu
cd "$(dirname "$0")/.."

for needed in perf node npm javac jfr elixir php "${PYTHON:-python3.13}"; do
    command -v "$needed" > /dev/null || { echo "$0: $needed is missing" >&2; exit 1; }
done
for file in /usr/share/java/h2.jar /usr/share/java/lucene-core-4.10.4.jar /usr/share/php/Twig/autoload.php; do
    [ -e "$file" ] || { echo "$0: apt-get install libh2-java liblucene4.10-java php-twig" >&2; exit 1; }
done
php -m | grep -q excimer || { echo "$0: apt-get install php-excimer" >&2; exit 1; }

cargo build --release --locked -p jitscribe-cli -p jitscribe-jvmti
inputs="$PWD/target/profilers"
mkdir -p "$inputs"
cp scripts/profilers/package.json scripts/profilers/package-lock.json "$inputs"
[ -d "$inputs/node_modules/terser" ] || npm ci --silent --no-fund --no-audit --ignore-scripts --prefix "$inputs" >&2
echo '{"compilerOptions": {"sourceMap": true, "skipLibCheck": false, "module": "nodenext", "types": ["node", "three"]}, "files": ["box.ts"]}' > "$inputs/tsconfig.json"
echo 'import * as three from "three"; export const box: three.Box3 = new three.Box3();' > "$inputs/box.ts"
[ -x "$inputs/venv/bin/py-spy" ] || "${PYTHON:-python3.13}" -m venv "$inputs/venv"
"$inputs/venv/bin/pip" install --quiet --require-hashes --no-deps -r scripts/profilers/requirements.txt >&2
"$inputs/venv/bin/pip" install --quiet py-spy==0.4.1 >&2
javac -d "$inputs" -cp "/usr/share/java/h2.jar:$(printf '%s:' /usr/share/java/lucene-*-4.10.4.jar)" scripts/profilers/*.java
exec python3 scripts/profilers/compare.py --jitscribe "$PWD/target/release/jitscribe" --inputs "$inputs" "$@"
