"""Compares the functions that jitscribe shows with those of another profiler.

Each program runs several times under either. A function's share is its part of all samples that
are in the program's own functions; native code and builtins count as the function that called
them, as most profilers of runtimes count them, and garbage collection counts for neither. A
difference is within the error of sampling if it is at most twice its standard error, which is
taken from the runs and from the number of samples.
"""

import argparse
import collections
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import tables

COLLECTORS = re.compile(r"^\(garbage collector\)$|::(Heap|GarbageCollector)::(CollectGarbage|Collect)\b")


class Counts:
    """Samples of one run, by function: innermost, and anywhere on the stack."""

    def __init__(self):
        self.self, self.total, self.samples = collections.Counter(), collections.Counter(), 0

    def add(self, frames, weight=1):
        """Frames of the program's own functions, the innermost first."""
        if frames:
            self.samples += weight
            self.self[frames[0]] += weight
            for function in set(frames):
                self.total[function] += weight


def of_cpuprofile(path, own):
    """A `.cpuprofile`: of V8, or as `jitscribe export --cpuprofile` writes it."""
    with open(path) as file:
        profile = json.load(file)
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}
    counts = Counts()
    for node, weight in collections.Counter(profile["samples"]).items():
        frames, collects = [], False
        while node:
            frame = nodes[node]["callFrame"]
            collects = collects or COLLECTORS.search(frame["functionName"])
            function = own(frame)
            if function:
                frames.append(function)
            node = parents.get(node)
        if not collects:
            counts.add(frames, weight)
    return counts


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # pylint's code has a bit for each kind of message: errors, warnings.
    if done.returncode & ~6:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def of_folded(path, own, counts=lambda frames: True):
    """Folded stacks, of all threads. `own` gets the text of a frame, `counts` those of a stack, the innermost first."""
    found = Counts()
    with open(path, errors="replace") as file:
        for line in file:
            stack, weight = line.rsplit(" ", 1)
            frames = stack.split(";")[::-1]
            if counts(frames):
                functions = map(own, frames)
                found.add([function for function in functions if function], int(weight))
    return found


def exported(to, command, rate, folder):
    """What jitscribe records of a command, in this format."""
    data, profile = os.path.join(folder, "ours.data"), os.path.join(folder, "ours")
    run(JITSCRIBE, "record", *rate, "-o", data, "--", *command, cwd=folder)
    run(JITSCRIBE, "export", "-f", to, "-i", data, "-o", profile)
    return profile


class Node:
    """Functions of JavaScript, by where they begin; the other profiler is V8's own."""

    other = "node --cpu-prof"
    rate = ("-F", "999")

    def __init__(self, *arguments):
        self.arguments = arguments

    @staticmethod
    def own(frame):
        url = frame["url"].removeprefix("file://")
        if url.startswith("/") and frame["lineNumber"] >= 0:
            return f"{os.path.basename(url)}:{frame['lineNumber'] + 1}:{frame['columnNumber'] + 1}"
        return None

    def ours(self, folder):
        profile = exported("--cpuprofile", ("node", *self.arguments), self.rate, folder)
        return of_cpuprofile(profile, self.own)

    def theirs(self, folder):
        run("node", "--cpu-prof", f"--cpu-prof-dir={folder}", *self.arguments, cwd=folder)
        [profile] = glob.glob(os.path.join(folder, "CPU*.cpuprofile"))
        return of_cpuprofile(profile, self.own)


class Java:
    """Methods; the other profiler is the JDK's Flight Recorder, which samples threads while they run Java, not the JVM."""

    other = "JDK Flight Recorder"

    def __init__(self, *arguments):
        self.arguments = arguments

    @staticmethod
    def name(name):
        """Lambdas and hidden classes have numbers that differ between runs."""
        return re.sub(r"(Lambda|LambdaForm\$\w+|MH)[$/.+0-9a-fx]*", r"\1", name.replace("/", "."))

    @classmethod
    def own(cls, frame):
        name = re.sub(r"_\[[a-z]\]$", "", frame)
        is_method = re.match(r"^(java|javax|jdk|sun|org|com|Queries|Index)\b[\w$./]*\.[\w$<>]+$", name)
        return cls.name(name) if is_method else None

    @staticmethod
    def runs_java(frames):
        user = (frame for frame in frames if not frame.endswith("_[k]"))
        return next(user, "").endswith(("_[j]", "_[i]"))

    def ours(self, folder):
        profile = exported("--folded", ("java", *self.arguments), (), folder)
        return of_folded(profile, self.own, self.runs_java)

    def theirs(self, folder):
        recording, settings = os.path.join(folder, "run.jfr"), os.path.join(folder, "settings.jfc")
        run("jfr", "configure", "--output", settings, "method-profiling=max")
        flight = f"-XX:StartFlightRecording=filename={recording},settings={settings}"
        precise = ("-XX:FlightRecorderOptions=stackdepth=512", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints")
        run("java", flight, *precise, *self.arguments, cwd=folder)
        depth = ("--stack-depth", "512")
        printed = run("jfr", "print", "--json", "--events", "jdk.ExecutionSample", *depth, recording)
        printed = printed[printed.index("{\n") :]
        counts = Counts()
        for event in json.loads(printed)["recording"]["events"]:
            values = event["values"]
            if (values["sampledThread"] or {}).get("javaName") != "main":
                continue
            methods = [frame["method"] for frame in values["stackTrace"]["frames"]]
            counts.add([self.name(f"{method['type']['name']}.{method['name']}") for method in methods])
        return counts


class Python:
    """Functions, by file and name; the other profiler is py-spy, which reads the interpreter's frames."""

    other = "py-spy"

    def __init__(self, python, *arguments):
        self.python, self.arguments = python, arguments

    @staticmethod
    def key(name, file):
        return f"{name.rsplit('.', 1)[-1]} ({'/'.join(file.split('/')[-2:])})"

    @classmethod
    def own(cls, frame):
        url = frame["url"].removeprefix("file://")
        return cls.key(frame["functionName"], url) if url.endswith(".py") else None

    def ours(self, folder):
        profile = exported("--cpuprofile", (self.python, *self.arguments), (), folder)
        return of_cpuprofile(profile, self.own)

    def theirs(self, folder):
        raw = os.path.join(folder, "stacks")
        spy = os.path.join(os.path.dirname(self.python), "py-spy")
        # The program stands still for a third of a second for each sample: its stacks are deep.
        options = ("record", "--full-filenames", "--function", "--rate", "25", "-f", "raw", "-o", raw)
        # It fails after it has written its file if the program was gone before it looked for its end.
        subprocess.run((spy, *options, "--", self.python, *self.arguments), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def own(frame):
            found = re.match(r"(.*) \((.*\.py)(?::\d+)?\)$", frame)
            return found and self.key(*found.groups())

        return of_folded(raw, own)


class Elixir:
    """Functions; the other profiler is a process of Erlang's that asks for the stack of the one that works."""

    other = "Process.info/2"
    # Erlang answers when the process yields, which it does at calls: where calls are, and not where time is spent.
    kinds = ("total",)
    written = re.compile(r"^(?!global::)[\w.]+[.:].+/\d+$")

    def __init__(self, script):
        self.script = script

    @staticmethod
    def name(raw):
        """Functions within a function count as that function, as in jitscribe."""
        module, function, arity = re.match(r"'?(?:Elixir\.)?([\w.]+)'?:'?(.*?)'?/(\d+)$", raw).groups()
        inner = re.match(r"-(.*?)/(\d+)-(?:fun-\d+-|\w+\$\^\d+/\d+-\d+-|[\w^/-]+)$", function)
        function, arity = inner.groups() if inner else (function, arity)
        return f"{module}.{function}/{arity}"

    @classmethod
    def own(cls, frame):
        name = frame.removesuffix("_[j]")
        is_function = name != frame and cls.written.match(name)
        return re.sub(r"^(\w+):", r"\1.", name) if is_function else None

    @staticmethod
    def add(counts, functions, weight=1):
        """The formatter's own part: what calls it is the script's, which differs between the two."""
        entry = "Code.format_string!/2"
        if entry in functions:
            counts.add(functions[: functions.index(entry) + 1], weight)

    def ours(self, folder):
        counts = Counts()
        with open(exported("--folded", ("elixir", self.script), (), folder)) as file:
            for line in file:
                stack, weight = line.rsplit(" ", 1)
                functions = map(self.own, stack.split(";")[::-1])
                self.add(counts, [function for function in functions if function], int(weight))
        return counts

    def theirs(self, folder):
        stacks = os.path.join(folder, "stacks")
        run("elixir", self.script, stacks, cwd=folder)
        counts = Counts()
        with open(stacks) as file:
            for line in file:
                self.add(counts, [self.name(frame) for frame in line.rstrip("\n").split("\t")])
        return counts


class PHP:
    """Functions; the other profiler is Excimer, which asks the interpreter. Each function is compiled by itself, as a trace contains what it calls."""

    other = "Excimer"
    # PHP's frames are not on the stack, so callers are not in a recording.
    kinds = ("self",)
    jit = ("enable_cli=1", "jit=function", "jit_buffer_size=64M", "file_update_protection=0")
    # Code that is evaluated is not compiled.
    evaluated = re.compile(r"__TwigTemplate|eval\(\)|^\{closure")

    def __init__(self, script, rounds):
        self.command = ("php", *(f"-dopcache.{setting}" for setting in self.jit), script, rounds)

    def ours(self, folder):
        counts = Counts()
        stacks = ("--call-graph", "dwarf,8192", "-F", "499")
        with open(exported("--folded", self.command, stacks, folder)) as file:
            for line in file:
                stack, weight = line.rsplit(" ", 1)
                for frame in stack.split(";")[::-1]:
                    if frame.endswith("_[j]") and not frame.startswith("JIT$"):
                        function = frame.removesuffix("_[j]")
                        counts.add([] if self.evaluated.search(function) else [function], int(weight))
                    if frame.endswith("_[j]") or frame == "execute_ex":
                        break
        return counts

    def theirs(self, folder):
        stacks = os.path.join(folder, "stacks")
        run(*self.command, stacks, cwd=folder)
        counts = Counts()
        with open(stacks) as file:
            for line in file:
                stack, weight = line.rsplit(" ", 1)
                function = stack.rsplit(";", 1)[-1]
                if not self.evaluated.search(function):
                    counts.add([function], int(weight))
        return counts


def shares(runs, which, function):
    """The mean share in these runs, and the variance of the mean."""
    parts = [getattr(counts, which)[function] / counts.samples for counts in runs]
    mean = sum(parts) / len(parts)
    between = sum((part - mean) ** 2 for part in parts) / max(1, len(parts) - 1) / len(parts)
    sampling = mean * (1 - mean) / sum(counts.samples for counts in runs)
    return mean, max(between, sampling)


def top(runs, which):
    functions = {function for counts in runs for function in getattr(counts, which)}
    return sorted(functions, key=lambda function: -shares(runs, which, function)[0])[:10]


def compare(which, ours, theirs):
    """Rows for each function that is among the ten with the most samples in either."""
    ranks = top(ours, which), top(theirs, which)
    rows = []
    for function in ranks[1] + [function for function in ranks[0] if function not in ranks[1]]:
        (mine, one), (other, two) = shares(ours, which, function), shares(theirs, which, function)
        rows.append((function, mine, other, abs(mine - other) <= 2 * math.sqrt(one + two)))
    return rows, len(set(ranks[0]) & set(ranks[1]))


def names_of(options, programs):
    """The programs that the command line names, or all."""
    return {name: program for name, program in programs.items() if not options.programs or name in options.programs}


def compare_runs(options, programs):
    """Prints the table of programs in runs of their own, and behind it each function."""
    print("| Program | Other profiler | Samples, ours and theirs | By | In both top tens | Within the error | Largest difference |")
    print("|---|---|---:|---|---:|---:|---|")
    details = []
    for name, program in programs.items():
        ours, theirs = [], []
        for number in range(options.runs):
            for runs, take in ((ours, program.ours), (theirs, program.theirs)):
                print(f"{name}: run {number + 1} of {options.runs}", file=sys.stderr)
                with tempfile.TemporaryDirectory() as folder:
                    runs.append(take(folder))
        counted = " and ".join(f"{sum(counts.samples for counts in runs):,}" for runs in (ours, theirs))
        for which in getattr(program, "kinds", ("self", "total")):
            rows, both = compare(which, ours, theirs)
            within = sum(row[3] for row in rows)
            function, mine, other, _ = max(rows, key=lambda row: abs(row[1] - row[2]))
            far = f"{100 * mine:.1f} % and {100 * other:.1f} %: `{function}`"
            print(f"| {name} | {program.other} | {counted} | {which} | {both} of 10 | {within} of {len(rows)} | {far} |", flush=True)
            details.append((name, which, rows))
    for name, which, rows in details:
        print(f"\n{name}, {which}:")
        for function, mine, other, within in rows:
            print(f"{100 * mine:6.2f} {100 * other:6.2f} {' ' if within else '!'} {function}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--jitscribe", required=True)
    options.add_argument("--inputs", required=True, help="the folder that the script fills")
    options.add_argument("--runs", type=int, default=3, help="0: only the runtimes' own tables")
    options.add_argument("programs", nargs="*")
    options = options.parse_args()
    global JITSCRIBE
    JITSCRIBE = options.jitscribe
    inputs = os.path.abspath(options.inputs)
    at = lambda *parts: os.path.join(inputs, *parts)
    beside = lambda name: os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    jars = ":".join(sorted(glob.glob("/usr/share/java/lucene-*-4.10.4.jar")))
    [checked] = glob.glob(at("venv/lib/python3*/site-packages/pip/_internal/req"))
    modules = at("node_modules")
    terser = (f"{modules}/terser/bin/terser", f"{modules}/three/build/three.module.js", "-c", "-m", "-o", "/dev/null")
    tsc = (f"{modules}/typescript/bin/tsc", "-p", inputs, "--outDir", at("dist"))
    h2 = ("-cp", f"{inputs}:/usr/share/java/h2.jar", "Queries", "120")
    lucene = ("-XX:+UseSerialGC", "-cp", f"{inputs}:{jars}", "Index", "12")
    format, render = beside("format.exs"), beside("render.php")
    python = (at("venv", "bin", "python"), "-m", "pylint", "--disable=all", "--enable=E,W", checked)
    tracing = [f"-dopcache.{setting}" for setting in ("enable_cli=1", "jit=tracing", "jit_buffer_size=64M", "file_update_protection=0", "jit_debug=48")]
    print("The same samples, by the runtimes' own tables:\n")
    tables.main(JITSCRIBE, names_of(options, {
        "terser": tables.Node("node", *terser),
        "tsc": tables.Node("node", *tsc),
        "H2": tables.Java(*h2),
        "Lucene": tables.Java(*lucene),
        "Elixir": tables.Elixir("elixir", format),
        "pylint": tables.Python(*python),
        "PHP": tables.PHP("php", *tracing, render, "40000"),
    }))
    if options.runs:
        print("\nOther profilers, in runs of their own:\n")
        compare_runs(options, names_of(options, {
            "terser": Node(*terser),
            "tsc": Node(*tsc),
            "H2": Java(*h2),
            "Lucene": Java(*lucene),
            "Elixir": Elixir(format),
            "PHP": PHP(render, "40000"),
            "pylint": Python(*python),
        }))


if __name__ == "__main__":
    main()
