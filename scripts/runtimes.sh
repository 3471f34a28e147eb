#!/bin/sh
# Records a program of each runtime that can be had, with `jitscribe record` and nothing else, and prints what was named: the table of
# docs/runtimes/measured.md.
# Usage: scripts/runtimes.sh [ROW...]        rows are named in scripts/runtimes/measure.py
# Needs `scripts/setup.sh live`. What it does not install is taken if it is there, and else has a row that says so:
#   apt-get install luajit lua5.4 postgresql-15 qml qml-module-qtqml guile-3.0 racket chezscheme sbcl ruby
#   scripts/runtimes.sh --install             packages of PyPI, into target/runtimes
set -eu
cd "$(dirname "$0")/.."
inputs="$PWD/target/runtimes"
mkdir -p "$inputs"
if [ "${1:-}" = --install ]; then
    python3 -m venv "$inputs/venv"
    "$inputs/venv/bin/pip" install --quiet numba==0.68.1 jax==0.10.2 lupa==2.6 cppyy==3.5.0 openvino==2025.4.1 taichi==1.7.4
    # The last Python for which there is a JIT compiler of Pyston's is 3.10.
    for python in python3.10 "$HOME"/.pyenv/versions/3.10*/bin/python3.10; do
        if "$python" -c "" 2>/dev/null; then
            "$python" -m venv "$inputs/pyston" && "$inputs/pyston/bin/pip" install --quiet pyston_lite==2.3.5
            break
        fi
    done
    exit
fi
cargo build --quiet --release --locked -p jitscribe-cli -p jitscribe-jvmti -p jitscribe-preload
exec python3 scripts/runtimes/measure.py --jitscribe "$PWD/target/release/jitscribe" --inputs "$inputs" "$@"
