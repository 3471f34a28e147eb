"""Records one program of each runtime by `jitscribe record`, and prints a row of a table for each: see scripts/runtimes.sh."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "tests", "workloads")
CACHE = os.environ.get("JITSCRIBE_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "jitscribe")


def rows(inputs):
    """Each row: its name, the program, how it says its version, and the command."""
    venv = os.path.join(inputs, "venv/bin/python3")
    kernels = os.path.join(CACHE, "kernels/bin/python3")
    kernels = kernels if os.path.exists(kernels) else venv
    php = ["php", "-dopcache.enable_cli=1", "-dopcache.jit=tracing", "-dopcache.jit_buffer_size=64M", "-dopcache.file_update_protection=0"]
    package = lambda python, name: [python, "-c", f"import importlib.metadata as it; print(it.version('{name}'))"]
    here = lambda name: os.path.join(HERE, name)
    work = lambda name: os.path.join(WORK, name)
    cached = lambda name: os.path.join(CACHE, name)
    return [
        ("node", ["node", "--version"], ["node", work("spin.js")]),
        ("node 24", [cached("node-24.19.0/bin/node"), "--version"], [cached("node-24.19.0/bin/node"), work("spin.js")]),
        ("deno", [cached("deno-2.9.6/deno"), "--version"], [cached("deno-2.9.6/deno"), "run", work("spin.js")]),
        ("bun", [cached("bun-1.4.5/bin/bun"), "--version"], [cached("bun-1.4.5/bin/bun"), work("spin.js")]),
        ("JavaScriptCore", ["dpkg-query", "-W", "-f", "${Version}", "libjavascriptcoregtk-4.0-18"], ["jsc", work("spin.js")]),
        ("Java", ["java", "-version"], ["java", work("Spin.java")]),
        ("Erlang", ["erl", "-noshell", "-eval", "io:put_chars(erlang:system_info(otp_release)),halt()."],
         ["erl", "-noshell", "-pa", inputs, "-s", "spin", "main", "-s", "init", "stop"]),
        ("PHP", ["php", "--version"], [*php, work("spin.php")]),
        ("PHP, registered with GDB", ["php", "--version"], [*php, "-dopcache.jit_debug=256", work("spin.php")]),
        ("CPython 3.13", [cached("trixie/run/python3.13"), "--version"], [cached("trixie/run/python3.13"), work("spin.py")]),
        ("PyPy", ["pypy3", "--version"], ["pypy3", work("traces.py")]),
        ("Pyston", package(os.path.join(inputs, "pyston/bin/python"), "pyston_lite"), [os.path.join(inputs, "pyston/bin/python"), here("pyston.py")]),
        ("Ruby", ["ruby", "--version"], ["ruby", here("spin.rb")]),
        ("Rakudo", ["rakudo", "--version"], ["rakudo", work("spin.raku")]),
        (".NET", ["dotnet", "--version"], ["dotnet", os.path.join(inputs, "spin/Spin.dll")]),
        ("Mono", ["mono", "--version"], ["mono", os.path.join(inputs, "Spin.exe")]),
        ("Julia", ["julia", "--version"], ["julia", here("spin.jl")]),
        ("wasmtime (Python)", package(cached("wasmtime/bin/python3"), "wasmtime"), [cached("wasmtime/bin/python3"), work("spin_wasm.py"), "jitdump"]),
        ("lli, MCJIT", ["lli-14", "--version"], ["lli-14", "--jit-kind=mcjit", work("spin.ll")]),
        ("lli, ORC", ["lli-14", "--version"], ["lli-14", "--jit-kind=orc", work("spin.ll")]),
        ("numba", package(kernels, "numba"), [kernels, work("kernels.py"), "plain", "2"]),
        ("numba, `parallel`", package(kernels, "numba"), [kernels, work("kernels.py"), "parallel", "2"]),
        ("numba, `debug=True`", package(kernels, "numba"), [kernels, work("kernels.py"), "debug", "2"]),
        ("JAX", package(kernels, "jax"), [kernels, work("kernels_jax.py"), "2"]),
        ("cppyy (Cling)", package(venv, "cppyy"), [venv, here("cling.py")]),
        ("OpenVINO (oneDNN)", package(venv, "openvino"), [venv, here("openvino_spin.py")]),
        ("Taichi", package(venv, "taichi"), [venv, here("taichi_spin.py")]),
        ("LuaJIT", ["luajit", "-v"], ["luajit", here("spin.lua")]),
        ("lupa (LuaJIT)", package(venv, "lupa"), [venv, here("lupa_spin.py")]),
        ("PCRE2 in PHP", ["php", "--version"], ["php", here("regex.php")]),
        ("PCRE2 in git", ["git", "--version"], ["sh", here("grep.sh")]),
        ("Qt 5 QML", ["/usr/lib/qt5/bin/qml", "--version"], ["/usr/lib/qt5/bin/qml", "--apptype", "core", here("spin.qml")]),
        ("Guile", ["guile", "--version"], ["guile", "--no-auto-compile", here("spin.scm")]),
        ("Racket", ["racket", "--version"], ["racket", here("spin.rkt")]),
        ("SBCL", ["sbcl", "--version"], ["sbcl", "--script", here("spin.lisp")]),
        ("QEMU's user mode", [cached("qemu/usr/bin/qemu-x86_64"), "--version"], [cached("qemu/usr/bin/qemu-x86_64"), "/usr/bin/python3", "-c", "sum(i * i for i in range(3000000))"]),
    ]


def prepare(inputs):
    """What must be compiled, if its compiler is there."""
    for compiler, words in [
        ("erlc", ["erlc", "-o", inputs, os.path.join(WORK, "spin.erl")]),
        ("mcs", ["mcs", f"-out:{inputs}/Spin.exe", os.path.join(WORK, "Spin.cs")]),
    ]:
        if shutil.which(compiler):
            subprocess.run(words, check=True)


def version(words):
    """The first number that a program says, or None if it is not installed."""
    if not shutil.which(words[0]):
        return None
    said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    found = re.search(r"(?<=version )\d+(\.\d+)*", said.stdout) or re.search(r"\d+(\.\d+)*", said.stdout)
    return found[0] if said.returncode == 0 and found else None


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def row(jitscribe, name, of, command):
    number = version(of)
    if number is None or not all(os.path.exists(word) for word in command if word.startswith("/")):
        return [name, "not installed"] + [""] * 6
    with tempfile.TemporaryDirectory() as folder:
        words = [jitscribe, "record", "--json", "--allow-empty", "-o", "it.data", "--", *command]
        done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        # The recorded program may print, too.
        begin = done.stdout.rfind('{\n  "schema_version"')
        if begin < 0:
            return [name, number, "failed: " + (done.stderr.strip().splitlines() or ["?"])[-1]] + [""] * 5
        report, _ = json.JSONDecoder().raw_decode(done.stdout[begin:])
        top = next((function["name"] for function in report["top"]), None)
        assembly = ""
        if report["samples"]["named"] and top:
            shown = subprocess.run([jitscribe, "annotate", "-i", "it.data", top], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            assembly = "yes" if shown.returncode == 0 and re.search(r"(?m)^.*\b(mov|add|jmp|ret|lea|call)", shown.stdout) else "no"
        samples, stacks = report["samples"], report.get("stacks") or {}
        jitted = samples["named"] + samples["inferred"] + samples["unnamed"]
        return [
            name,
            number,
            share(jitted, samples["samples"]),
            share(samples["named"], jitted),
            share(samples["with_lines"], samples["named"]),
            assembly,
            share(stacks.get("whole", 0), stacks.get("stacks", 0)),
            {"copied": "copies", "walked": "frame pointers"}.get(stacks.get("recorded"), "–"),
        ]


def main():
    # Qt's programs ask for a display.
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    parser = argparse.ArgumentParser()
    parser.add_argument("--jitscribe", required=True)
    parser.add_argument("--inputs", required=True)
    parser.add_argument("row", nargs="*")
    args = parser.parse_args()
    prepare(args.inputs)
    print("| Runtime | Version | Jitted | Named | With lines | Assembly | Whole stacks | Stacks by |")
    print("|---|---|---:|---:|---:|---|---:|---|")
    for name, of, command in rows(args.inputs):
        if args.row and name not in args.row:
            continue
        print(f"{name} …", end="\r", file=sys.stderr)
        try:
            cells = row(args.jitscribe, name, of, command)
        except subprocess.TimeoutExpired:
            cells = [name, "", "did not end"] + [""] * 5
        print("| " + " | ".join(cells) + " |", flush=True)


main()
