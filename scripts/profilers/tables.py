"""Compares what jitscribe shows of each sample with the runtime's own tables.

One run of each program is recorded. perf prints the addresses of its samples. They are looked up
here in what the runtime wrote of its code in that run: HotSpot's listing of compiled methods,
which has the inlined calls too, the jitdumps of V8 and CPython, the perf maps of PHP and Erlang.
The samples are the same on both sides, so no function may differ by any.
"""

import collections
import glob
import json
import os
import re
import subprocess
import tempfile

from codes import SEVERAL, HotSpot, JitDump, PerfMap

KERNEL = 1 << 63


def stacks_of_perf(path):
    """Thread → its samples in the order of time: (time, stack of (address, whether it is a return address, perf's symbol), process)."""
    command = ("perf", "script", "-i", path, "--no-inline", "--max-stack", "1000", "-F", "pid,tid,time,ip,sym", "--ns")
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", check=True).stdout
    threads = collections.defaultdict(list)
    for sample in printed.strip().split("\n\n"):
        head, *lines = sample.strip().split("\n")
        pid, tid, seconds, fraction = re.match(r"\s*(\d+)/(\d+) +(\d+)\.(\d+):", head).groups()
        frames = [(line.split(maxsplit=1) + [""])[:2] for line in lines]
        addresses = [int(address, 16) for address, _ in frames]
        # What interrupted the program is above the address at which it was.
        is_return = [number > 0 and addresses[number - 1] < KERNEL for number in range(len(addresses))]
        stack = list(zip(addresses, is_return, (symbol for _, symbol in frames)))
        threads[int(tid)].append((int(seconds) * 10**9 + int(fraction), stack, int(pid)))
    return {tid: sorted(samples, key=lambda sample: sample[0]) for tid, samples in threads.items()}


def stacks_of_jitscribe(path, function):
    """Thread → its stacks of functions as `jitscribe export --firefox` writes them: (function, whether it is inlined), the innermost first."""
    with open(path) as file:
        profile = json.load(file)
    shared = profile["shared"]
    frames, stacks, functions = shared["frameTable"], shared["stackTable"], shared["funcTable"]
    text = shared["stringArray"]

    def place(number):
        source = functions["source"][number]
        file = text[shared["sources"]["filename"][source]] if source is not None else ""
        return text[functions["name"][number]], file, functions["lineNumber"][number], functions["columnNumber"][number]

    named = [function(*place(number)) for number in range(functions["length"])]
    threads = collections.defaultdict(list)
    for thread in profile["threads"]:
        for stack in thread["samples"]["stack"]:
            found = []
            while stack is not None:
                frame = stacks["frame"][stack]
                found.append((named[frames["func"][frame]], frames["inlineDepth"][frame] > 0))
                stack = stacks["prefix"][stack]
            threads[int(thread["tid"])].append(found)
    return threads


class Difference:
    """The samples that both sides have: of which function each is, and how many each function has."""

    def __init__(self):
        # Samples in the table's code; those of which both say the same function; those at addresses of several functions.
        self.samples = self.same = self.several = 0
        # For each way of counting: the functions of jitscribe, and those of the table.
        self.counts = {which: (collections.Counter(), collections.Counter()) for which in ("self", "total")}
        # Functions that only one side has on a stack, or at its end: (jitscribe's, the table's).
        self.others = {which: collections.Counter() for which in ("self", "total")}

    def add(self, functions, looked_up):
        """A sample: jitscribe's functions, and for each frame of perf the possible readings of the table, which are lists of functions."""
        if SEVERAL in looked_up:
            self.several += 1
        elif any(looked_up):
            if looked_up[0]:
                self.add_self(functions[0] if functions else None, [reading[0] for reading in looked_up[0]])
            self.add_total(set(functions), looked_up)

    def add_self(self, shown, readings):
        truth = shown if shown in readings else readings[-1]
        self.samples += 1
        self.same += shown == truth
        if shown != truth:
            self.others["self"][(shown, truth)] += 1
        self.counts["self"][0][shown] += 1
        self.counts["self"][1][truth] += 1

    def add_total(self, shown, looked_up):
        truth = set()
        for readings in filter(None, looked_up):
            truth |= set(next((reading for reading in readings if set(reading) <= shown), readings[0]))
        self.counts["total"][0].update(shown)
        self.counts["total"][1].update(truth)
        self.others["total"].update((None, function) for function in truth - shown)
        self.others["total"].update((function, None) for function in shown - truth)

    def top(self, which):
        """The ten functions with the most samples in the table's count, each with both counts."""
        ours, theirs = self.counts[which]
        return [(function, ours[function], count) for function, count in theirs.most_common(10)]

    def others_of_table(self, which):
        """Functions that only one side has, with their samples. Those of which the table never has one are native ones."""
        known = self.counts[which][1]
        return [it for it in self.others[which].most_common() if it[0][1] or it[0][0] in known]


class Program:
    """A program, and what its runtime writes of its code."""

    options = ()
    table = ""
    # Whether the table has inlined calls.
    has_inlined = False
    # Functions of an interpreter have hardly any code of their own: native code counts as the function that called it.
    is_interpreted = False

    def __init__(self, *command):
        self.command = command

    def record(self, jitscribe, folder):
        """Records the program. Returns its output."""
        options = ("--keep-raw", *self.options, "-o", "run.data")
        done = subprocess.run((jitscribe, "record", *options, "--", *self.command), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        assert not done.returncode & ~6, done.stderr[-2000:]
        return done.stdout

    def samples(self, folder):
        """What perf says of the recording as it was written."""
        return stacks_of_perf(os.path.join(folder, "run.data.raw", "perf.data"))

    def compare(self, jitscribe, folder):
        printed = self.record(jitscribe, folder)
        profile = os.path.join(folder, "run.firefox")
        export = (jitscribe, "export", "--firefox", "-i", "run.data", "-o", profile)
        subprocess.run(export, cwd=folder, check=True, stderr=subprocess.DEVNULL)
        ours = stacks_of_jitscribe(profile, self.shown)
        look_up = self.tables(folder, printed)
        difference = Difference()
        for tid, samples in self.samples(folder).items():
            assert len(ours[tid]) == len(samples), f"thread {tid}: {len(ours[tid])} and {len(samples)} samples"
            for (time, stack, pid), frames in zip(samples, ours[tid]):
                functions = [function for function, is_inlined in frames if self.has_inlined or not is_inlined]
                looked_up = look_up(pid, stack, time)
                if self.is_interpreted:
                    functions = [function for function in functions if function]
                    looked_up = [readings for readings in looked_up if readings]
                difference.add(functions, looked_up)
        return difference

    def in_tables(self, open_table):
        """Looks frames up in the table of their process, which is read when it is needed."""
        tables = {}

        def look_up(pid, stack, time):
            if pid not in tables:
                tables[pid] = open_table(pid)
            table = tables[pid]
            return [table and table.at(address, is_return, time) for address, is_return, _ in stack]

        return look_up


class WithMap(Program):
    """A runtime that writes a perf map."""

    table = "perf map"
    options = ("-F", "999")

    def tables(self, _folder, _printed):
        def open_table(pid):
            path = f"/tmp/perf-{pid}.map"
            table = PerfMap(path, self.name) if os.path.exists(path) else None
            for file in (path, f"/tmp/jit-{pid}.dump"):
                if os.path.exists(file):
                    os.remove(file)
            return table

        return self.in_tables(open_table)


class Node(Program):
    """Functions, by where they begin."""

    table = "V8's jitdump"
    options = ("-F", "999")
    written = re.compile(r"(?:JS|Eval|Script|Function|LazyCompile):\S* ?.*?([^ /]+):(\d+):(\d+)$")

    def tables(self, folder, _printed):
        def open_table(pid):
            path = os.path.join(folder, f"jit-{pid}.dump")
            return JitDump(path, self.name) if os.path.exists(path) else None

        return self.in_tables(open_table)

    def name(self, raw):
        found = self.written.match(raw)
        return ":".join(found.groups()).removeprefix("node:") if found else None

    @staticmethod
    def shown(name, file, line, column):
        return f"{os.path.basename(file)}:{line}:{column}" if file and line else name


class Java(Program):
    """Methods, with those that HotSpot inlined."""

    table = "HotSpot's list of compiled methods"
    options = ("-F", "999", "--call-graph", "fp")
    has_inlined = True

    def __init__(self, *command):
        # Without flushing, no address has two methods.
        super().__init__("java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintNMethods", "-XX:-MethodFlushing", *command)

    @staticmethod
    def name(name):
        """Lambdas and hidden classes have numbers."""
        return re.sub(r"(Lambda|LambdaForm\$\w+|MH)[$/.+0-9a-fx]*", r"\1", name.replace("/", "."))

    def shown(self, name, *_place):
        return self.name(name)

    def tables(self, _folder, printed):
        table = HotSpot(printed, self.name)
        return self.in_tables(lambda _pid: table)


class PHP(WithMap):
    """Traces, by the function in which they begin."""

    @staticmethod
    def name(raw):
        found = re.match(r"TRACE-\d+\$(.*)\$\d+(/\d+)?$", raw)
        return found and found[1]

    @staticmethod
    def shown(name, *_place):
        return name


class Elixir(WithMap):
    """Functions. One within a function counts as that function."""

    @staticmethod
    def name(raw):
        raw = raw.removeprefix("$").removesuffix("-CodeInfoPrologue")
        found = re.match(r"'?(?:Elixir\.)?([\w.]+)'?:'?(.*?)'?/(\d+)$", raw)
        if not found or raw.startswith("global::"):
            return None
        module, function, arity = found.groups()
        inner = re.match(r"-(?:fun\.)?(.*?)/(\d+)-", function)
        function, arity = inner.groups() if inner else (function, arity)
        return f"{module}.{function}/{arity}"

    @classmethod
    def shown(cls, name, *_place):
        name = re.sub(r"^anonymous fn/\d+ in ", "", name)
        name = re.sub(r"^([\w.]+)\.(-fun\.)", r"\1:\2", name)
        return (cls.name(name) if ":" in name else None) or name


class Python(Program):
    """Functions of Python, by file and name. perf itself brings CPython's jitdump into the recording, and unwinds the stacks."""

    table = "CPython's jitdump, by `perf inject --jit`"
    is_interpreted = True

    @staticmethod
    def key(name, file):
        return f"{name.rsplit('.', 1)[-1]} ({'/'.join(file.split('/')[-2:])})"

    def shown(self, name, file, *_place):
        return self.key(name, file) if file.endswith(".py") else None

    def samples(self, folder):
        raw, injected = os.path.join(folder, "run.data.raw", "perf.data"), os.path.join(folder, "stock.data")
        subprocess.run(("perf", "inject", "--jit", "-i", raw, "-o", injected), check=True, stderr=subprocess.DEVNULL)
        samples = stacks_of_perf(injected)
        # perf writes its object files beside the jitdump, which is in /tmp.
        for pid in {pid for of_thread in samples.values() for _, _, pid in of_thread}:
            for file in glob.glob(f"/tmp/jitted-{pid}-*.so") + glob.glob(f"/tmp/jit-{pid}.dump"):
                os.remove(file)
        return samples

    def tables(self, _folder, _printed):
        def look_up(_pid, stack, _time):
            found = (re.match(r"py::(.*):(/.*\.py)$", symbol) for _, _, symbol in stack)
            return [[[self.key(*it.groups())]] if it else None for it in found]

        return look_up


def row(name, program, difference):
    """A row of the table in docs/accuracy.md."""
    exact = [sum(ours == theirs for _, ours, theirs in difference.top(which)) for which in ("self", "total")]
    tops = [len(difference.top(which)) for which in ("self", "total")]
    samples = f"{difference.samples:,} | {difference.same:,}"
    return f"| {name} | {program.table} | {samples} | {exact[0]} of {tops[0]} | {exact[1]} of {tops[1]} |"


def main(jitscribe, programs):
    """Prints the table, and behind it each function."""
    print("| Program | Table | Samples in its code | Of the same function | Top ten by self: equal | Top ten by total: equal |")
    print("|---|---|---:|---:|---:|---:|")
    details = []
    for name, program in programs.items():
        with tempfile.TemporaryDirectory() as folder:
            difference = program.compare(jitscribe, folder)
        print(row(name, program, difference), flush=True)
        details.append((name, difference))
    for name, difference in details:
        print(f"\n{name}: {difference.several} samples have an address that several functions had")
        for which in ("self", "total"):
            for function, ours, theirs in difference.top(which):
                print(f"{which:5} {ours:6} {theirs:6} {' ' if ours == theirs else '!'} {function}")
            for (shown, truth), count in difference.others_of_table(which)[:5]:
                print(f"{count:12} {which}: {shown} in jitscribe, {truth} in the table")
