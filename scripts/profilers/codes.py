"""What runtimes write of their code: which functions are at an address."""

import bisect
import re
import struct

# Several functions had code at the address in the course of the run, and the table has no times.
SEVERAL = object()


class Ranges:
    """What is at which addresses, where each entry is (begin, end, value)."""

    def __init__(self, entries):
        self.entries = sorted(entries, key=lambda entry: entry[0])
        self.begins = [entry[0] for entry in self.entries]
        # The longest entry bounds how far back one can begin that covers an address.
        self.longest = max((end - begin for begin, end, _ in self.entries), default=0)

    def at(self, address):
        """The values of all entries that cover the address, each once."""
        found = []
        number = bisect.bisect_right(self.begins, address) - 1
        while number >= 0 and self.begins[number] + self.longest > address:
            begin, end, value = self.entries[number]
            if begin <= address < end and value not in found:
                found.append(value)
            number -= 1
        return found


class PerfMap:
    """A table of functions without inlined calls."""

    def __init__(self, path, name):
        entries = []
        with open(path, errors="replace") as file:
            for line in file:
                begin, size, raw = line.rstrip("\n").split(" ", 2)
                begin = int(begin, 16)
                entries.append((begin, begin + int(size, 16), name(raw)))
        self.ranges = Ranges(entries)

    def at(self, address, is_return, _time):
        """The functions at an address, the innermost first, in each possible reading."""
        found = self.ranges.at(address - is_return)
        if len(found) > 1:
            return SEVERAL
        return [[found[0]]] if found and found[0] else None


class JitDump:
    """The codes of a jitdump, each with the time from which on it was at its address."""

    LOAD = 0

    def __init__(self, path, name):
        entries = []
        with open(path, "rb") as file:
            content = file.read()
        at = struct.unpack_from("<4xI I", content)[1]
        while at + 16 <= len(content):
            kind, size, time = struct.unpack_from("<IIQ", content, at)
            if kind == self.LOAD:
                _, _, _, begin, code_size, _ = struct.unpack_from("<IIQQQQ", content, at + 16)
                raw = content[at + 56 : content.index(b"\0", at + 56)].decode(errors="replace")
                entries.append((begin, begin + code_size, (time, name(raw))))
            at += size
        self.ranges = Ranges(entries)

    def at(self, address, is_return, time):
        found = [it for it in self.ranges.at(address - is_return) if it[0] <= time]
        last = max(found, key=lambda it: it[0])[1] if found else None
        return [[last]] if last else None


class HotSpot:
    """What `-XX:+PrintNMethods` prints: for every 4 bytes of code the inlined calls of the debug information that ends there."""

    head = re.compile(r"Compiled method \((?:c1|c2|n/a|nat)\) +\d+ +\d+ +.*?([\w$/.+<>]+)::([\w$<>]+) \(")
    place = re.compile(r"^\s+; - (?:\(reexecute\) )?([\w$/.+]+)::([\w$<>]+)@")

    def __init__(self, printed, name):
        methods, method, group = [], None, None
        for line in printed.splitlines():
            if head := self.head.search(line):
                method = {"name": name(".".join(head.groups())), "places": {}}
            elif method and (code := re.match(r" main code +\[0x(\w+),0x(\w+)\]", line)):
                begin, end = (int(it, 16) for it in code.groups())
                methods.append((begin, end, method["name"], method["places"]))
            elif begin := re.match(r"  0x(\w{16}): ;", line):
                group = int(begin[1], 16)
            elif method and group is not None and (place := self.place.match(line)):
                method["places"].setdefault(group, []).append(name(".".join(place.groups())))
            elif re.match(r"  0x\w{16}: \w", line):
                group = None
        tables = []
        for begin, end, own, places in methods:
            groups = sorted(group for group in places if begin <= group < end)
            tables.append((begin, end, (own, tuple(groups), tuple(tuple(places[group]) for group in groups))))
        self.ranges = Ranges(tables)

    def at(self, address, is_return, _time):
        found = self.ranges.at(address - is_return)
        if len(found) != 1:
            return SEVERAL if found else None
        [(own, groups, places)] = found
        # Information applies to what ends at its address, or before it: the first that ends behind the instruction. That of a call ends at the return
        # address. Of the 4 bytes of a group, it is not known where it ends: if the address is among them, the next group's may be meant.
        first = bisect.bisect_right(groups, address - is_return - 4)
        number = 2 if first < len(groups) and groups[first] <= address - is_return else 1
        candidates = places[first : first + number]
        return [list(it) for it in candidates] or [[own]]
