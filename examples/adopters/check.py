#!/usr/bin/env python3
"""Checks by `perf script` what a recording shows of the code of a JIT.

    check.py PERF.DATA --names fib,mix [--file work.c] [--with-lines 95] [--caller run] [--bottom main]

Every sample in memory that belongs to no file has a name; each of the names has 20 samples; with --file, 95 % (or
--with-lines) of the samples in them have a line of that file, as compilers give some code no line; with --caller, 19 of 20 stacks that end in one of the names pass that function, and with
--bottom also that one.
"""
import argparse
import collections
import re
import subprocess
import sys

FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")


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

    fields = "comm,ip,sym,dso" + (",srcline" if wanted.file else "")
    command = ["perf", "script", "-i", wanted.data, "-F", fields, "--no-inline"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    samples, unnamed, lines = collections.Counter(), [], collections.Counter()
    through = collections.Counter()
    for block in printed.split("\n\n"):
        frames = []
        for line in block.splitlines():
            if found := FRAME.match(line):
                frames.append([found[2], found[3], None])
            elif frames and wanted.file and frames[-1][2] is None:
                frames[-1][2] = line.strip()
        if not frames:
            continue
        name, dso, source = frames[0]
        if name == "[unknown]" and (dso.startswith(("//anon", "[anon", "[heap", "[unknown", "/memfd"))):
            unnamed.append(block)
        if name in names:
            samples[name] += 1
            lines[name] += source is not None and source.split(":")[0].endswith(wanted.file or "")
            symbols = [symbol for symbol, _, _ in frames[1:]]
            through[name] += all(one in symbols for one in (wanted.caller, wanted.bottom) if one)
    told = ", ".join(f"{name}: {samples[name]} samples, {lines[name]} with lines, {through[name]} with their callers" for name in names)
    print(f"check.py: {told}; {len(unnamed)} samples have no name")
    if unnamed:
        sys.exit(f"no name:\n{unnamed[0]}")
    for name in names:
        if samples[name] < 20:
            sys.exit(f"{name} has {samples[name]} samples:\n{printed[:2000]}")
        if wanted.file and lines[name] * 100 < samples[name] * wanted.with_lines:
            sys.exit(f"{name} has no lines of {wanted.file}:\n{printed[:2000]}")
        if (wanted.caller or wanted.bottom) and through[name] * 20 < samples[name] * 19:
            sys.exit(f"the stacks of {name} do not reach its callers:\n{printed[:2000]}")


main()
