#!/usr/bin/env python3
"""Checks by `perf script` what a recording shows of the code of a JIT.

    check.py PERF.DATA --names fib,mix [--file work.c] [--with-lines 95] [--caller run] [--bottom main]

Every sample in memory that belongs to no file has a name; each of the names has 10 samples; with --file, 95 % (or
--with-lines) of the samples in them have a line of that file, as compilers give some code no line; with --caller, 19 of 20 stacks that end in one of the names pass that function, and with
--bottom also that one.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")
LEAF = re.compile(r"^\s*[0-9a-f]+ (.*)$")


def script(data: str, *options: str) -> str:
    command = ["perf", "script", "-i", data, "--no-inline", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--names", required=True)
    parser.add_argument("--file")
    parser.add_argument("--with-lines", type=int, default=95)
    parser.add_argument("--caller")
    parser.add_argument("--bottom")
    wanted = parser.parse_args()
    names = wanted.names.split(",")

    printed = script(wanted.data, "-F", "comm,ip,sym,dso")
    samples, unnamed, lines = collections.Counter(), [], collections.Counter()
    through = collections.Counter()
    for block in printed.split("\n\n"):
        frames = [(found[2], found[3]) for line in block.splitlines() if (found := FRAME.match(line))]
        if not frames:
            continue
        name, dso = frames[0]
        if name == "[unknown]" and (dso.startswith(("//anon", "[anon", "[heap", "[unknown", "/memfd"))):
            unnamed.append(block)
        if name in names:
            samples[name] += 1
            symbols = [symbol for symbol, _ in frames[1:]]
            through[name] += all(one in symbols for one in (wanted.caller, wanted.bottom) if one)
    if wanted.file:
        # Only of the JIT's code, and not of its callers: perf 6.1 takes a minute for the lines of a debug build.
        images = ",".join(path.name for path in pathlib.Path(wanted.data + ".jit").glob("*.elf"))
        leaves = script(wanted.data, "-G", "-F", "ip,sym,srcline", "--dsos", images).splitlines()
        for leaf, source in zip(leaves, leaves[1:]):
            found = LEAF.match(leaf)
            if found and found[1] in names:
                lines[found[1]] += source.strip().rpartition(":")[0].endswith(wanted.file)
    told = ", ".join(f"{name}: {samples[name]} samples, {lines[name]} with lines, {through[name]} with their callers" for name in names)
    print(f"check.py: {told}; {len(unnamed)} samples have no name")
    if unnamed:
        sys.exit(f"no name:\n{unnamed[0]}")
    for name in names:
        if samples[name] < 10:
            sys.exit(f"{name} has {samples[name]} samples:\n{printed[:2000]}")
        if wanted.file and lines[name] * 100 < samples[name] * wanted.with_lines:
            sys.exit(f"{name} has no lines of {wanted.file}:\n{printed[:2000]}")
        if (wanted.caller or wanted.bottom) and through[name] * 20 < samples[name] * 19:
            sys.exit(f"the stacks of {name} do not reach its callers:\n{printed[:2000]}")


main()
