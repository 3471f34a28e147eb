# jitscribe: shows gdb the JIT-compiled code of the debugged process.
#
# At each stop, before gdb prints anything, this script asks `jitscribe debug --serve` for symbol files of the code that is new.
# Commands: `jitscribe info`, `jitscribe refresh`.

import re
import struct

import gdb
from gdb.unwinder import Unwinder, register_unwinder

IN_MEMORY = re.compile(r"<in-memory@0x([0-9a-f]+)")


def say(text):
    gdb.write("jitscribe: %s\n" % text)


class Server(ServerProcess):
    """The server, which is started again if it ended."""

    def __init__(self):
        super().__init__()
        self.is_missing = False
        # How many were started: each has files of its own.
        self.starts = 0

    def ask(self, request):
        """The answer to a request; None if there is no server."""
        if self.is_missing:
            return None
        try:
            return self.exchange(request)
        except FileNotFoundError:
            self.is_missing = True
            say("there is no command %s; JIT-compiled code is not shown" % COMMAND)
        except (OSError, ValueError) as error:
            say("the server ended: %s" % error)
            self.stop()
        except KeyboardInterrupt:
            # Its answer would be taken for that to the next request.
            self.stop()
            raise
        return None

    def start(self):
        super().start()
        self.starts += 1

    def stop(self):
        """The process ends when it has answered, and deletes its files."""
        process, self.process = self.process, None
        for pipe in (process.stdin, process.stdout) if process else ():
            try:
                pipe.close()
            except OSError:
                # What was not written yet cannot be written now.
                pass


class Log:
    """The code log of a process, at an address in its memory: docs/format.md of jitscribe."""

    MAGIC = 0x4A695444
    SIZE = 4096
    CONTROL = 100
    ITEM = 168
    CHANGES = 176
    LENGTH = 184
    TEXT = 192
    # The item for breakpoints.
    TAG = 18
    # Bits of the control word.
    SHOW_ALL = 1 << 3
    BREAKPOINTS = 1 << 4
    REQUEST = 1 << 31

    def __init__(self, address):
        self.address = address
        # Whether the process registered all code before the first request.
        self.registers = False
        self.is_asked = False

    def read(self, offset, form):
        size = struct.calcsize(form)
        memory = gdb.selected_inferior().read_memory(self.address + offset, size)
        return struct.unpack(form, bytes(memory))[0]

    def write(self, offset, content):
        gdb.selected_inferior().write_memory(self.address + offset, content)

    def takes_breakpoints(self):
        """Whether the process can call gdb when code with a breakpoint comes or goes."""
        try:
            is_log = self.read(0, "<I") == self.MAGIC
            return is_log and self.read(self.ITEM, "<H") == self.TAG
        except gdb.error:
            return False

    @classmethod
    def has_room(cls, text):
        return len(text) <= cls.SIZE - cls.TEXT

    def request(self, text):
        """Asks the process to call gdb for code that matches `text`, or for all code if the text is too long."""
        control = self.read(self.CONTROL, "<I")
        if not self.is_asked:
            self.is_asked, self.registers = True, control & self.SHOW_ALL != 0
        if self.has_room(text):
            # The process must not read a text of which a part is of another.
            self.write(self.LENGTH, struct.pack("<II", 0, 0))
            self.write(self.TEXT, text or b"\n")
            self.write(self.LENGTH, struct.pack("<II", len(text), 0))
            asked = (control & ~self.SHOW_ALL) | self.BREAKPOINTS
        else:
            asked = (control & ~self.BREAKPOINTS) | self.SHOW_ALL
        self.write(self.CONTROL, struct.pack("<I", asked | self.REQUEST))

    def changes(self):
        """The number of changes so far; None if the process does not count them."""
        try:
            control = self.read(self.CONTROL, "<I")
            if control & self.BREAKPOINTS and not control & self.REQUEST:
                return self.read(self.CHANGES, "<Q")
        except gdb.error:
            pass
        return None


class ObjectFile:
    """An object file in the process's memory."""

    # Types of files, sections and symbols, and flags of sections: the ELF specification.
    RELOCATABLE = 1
    PROGBITS, SYMTAB = 1, 2
    FUNCTION = 2
    ALLOCATED_CODE = 6

    def __init__(self, address):
        self.address = address
        header = self.read(0, 64)
        if header[:4] != b"\x7fELF":
            raise ValueError("not an object file")
        order = ">" if header[5] == 2 else "<"
        if header[4] == 2:
            self.kind, table, entry, count = struct.unpack_from(order + "16xH22xQ10xHH", header)
            section = order + "4xIQQQQ24x"
        else:
            self.kind, table, entry, count = struct.unpack_from(order + "16xH14xI10xHH", header)
            section = order + "4xIIIII16x"
        self.symbol = order + "4xBxHQQ"
        # Elsewhere, only the sections are read.
        self.has_symbols = header[4] == 2 and self.kind != self.RELOCATABLE
        size = struct.calcsize(section) * count
        # Type, flags, address, offset and size of each section.
        self.sections = list(struct.iter_unpack(section, self.read(table, size))) if size else []

    def read(self, offset, size):
        return bytes(gdb.selected_inferior().read_memory(self.address + offset, size))

    def codes(self):
        """Address and size of its functions. In files that were not linked, only sections have addresses."""
        for kind, flags, start, offset, size in self.sections:
            if not self.has_symbols:
                if kind != 0 and flags & self.ALLOCATED_CODE == self.ALLOCATED_CODE and size > 0:
                    yield start, size
            elif kind == self.SYMTAB:
                for info, section, value, length in struct.iter_unpack(self.symbol, self.read(offset, size)):
                    if info & 15 == self.FUNCTION and section != 0 and length > 0:
                        yield value, length

    def words(self):
        """The content of the section of a log locator."""
        for kind, flags, start, offset, size in self.sections:
            if kind == self.PROGBITS and flags == 0 and size == 16:
                return struct.unpack("<QQ", self.read(offset, size))
        return None


def in_memory(objfile):
    """The address of an object file that the process registered; None for files on disk."""
    found = IN_MEMORY.match(objfile.filename or "")
    return int(found.group(1), 16) if found else None


def log_of(objfile):
    """The log that a log locator locates."""
    address = in_memory(objfile)
    if address is None:
        return None
    try:
        words = ObjectFile(address).words()
    except (gdb.error, ValueError):
        return None
    log = words and Log(words[0])
    return log if log and log.takes_breakpoints() else None


def registered_codes():
    """Address and size of the codes that the process itself registered with gdb."""
    codes = []
    for objfile in gdb.objfiles():
        address = in_memory(objfile)
        if address is None:
            continue
        try:
            codes.extend(ObjectFile(address).codes())
        except (gdb.error, ValueError):
            # The process is about to unregister it.
            continue
    return codes


def stopped_at():
    """Where the process was stopped; None if this is not known, as while it runs."""
    try:
        return int(gdb.parse_and_eval("(unsigned long)$pc"))
    except (gdb.error, ValueError):
        return None


def name_in(location):
    """The last component of a function's name, without parameters and template arguments."""
    depth, plain = 0, []
    for char in location:
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            plain.append(char)
    return "".join(plain).split("::")[-1].strip()


def explicit(words):
    """The options of an explicit location, such as -function f -line 3."""
    options = dict(zip(words[::2], words[1::2]))
    given = lambda *names: next((options[name] for name in names if name in options), None)
    source, line = given("-source", "-s"), given("-line", "-l")
    function = given("-function", "-f")
    if source and line:
        return "l %s %s" % (line, source)
    return "f %s" % name_in(function) if function else None


def breakpoint_line(location):
    """What a breakpoint at this location needs, in the form of docs/format.md; None if nothing."""
    location = re.split(r"\s+(?:if|thread|task|inferior|-force-condition)\b", location.strip())[0]
    location = re.sub(r"^-q(ualified)?\s+", "", location)
    if not location or location.startswith("*"):
        return None
    if location.startswith("-"):
        return explicit(location.split())
    quoted = re.match(r"^(['\"])(.+)\1$", location)
    if quoted:
        # All of it is a function's name, whatever characters it has.
        return "f %s" % quoted.group(2)
    if re.match(r"^[+-]?\d+$", location):
        return here(location)
    found = re.match(r"^(.*[^:]):(\d+)$", location)
    if found:
        return "l %s %s" % (found.group(2), found.group(1).strip("'\""))
    found = re.match(r"^.*[^:]:([^:].*)$", location)
    return "f %s" % name_in(found.group(1) if found else location)


def here(line):
    """A line of the current file."""
    try:
        place = gdb.decode_line()[1][0]
    except (gdb.error, TypeError, IndexError):
        return None
    if place.symtab is None:
        return None
    number = int(line) + (place.line if line[0] in "+-" else 0)
    return "l %d %s" % (number, place.symtab.filename)


def breakpoint_text():
    """What all breakpoints need."""
    lines = set()
    for point in gdb.breakpoints() or ():
        if point.is_valid() and point.enabled and point.location:
            line = breakpoint_line(point.location)
            if line and "\n" not in line:
                lines.add(line + "\n")
    return "".join(sorted(lines)).encode()


class Inferior:
    """What gdb has been told about the code of one process."""

    def __init__(self, number, subject):
        self.number = number
        self.subject = subject
        self.space = gdb.current_progspace()
        self.logs = []
        # The text that the logs have.
        self.text = None
        self.files = []
        # The server that has them.
        self.server = 0
        # The counters of the logs at the last refresh; None if something may change without being counted.
        self.changes = None
        # Whether the process was stopped since the last refresh.
        self.is_fresh = False
        self.answer = None

    def add_log(self, log):
        """Returns whether it is a new one."""
        if any(log.address == known.address for known in self.logs):
            return False
        self.logs.append(log)
        self.text = None
        return True

    def request(self):
        """Asks the process to call gdb for code that has breakpoints, before it can run."""
        text = breakpoint_text()
        if not self.logs or text == self.text:
            return
        try:
            for log in self.logs:
                log.request(text)
            self.text = text
        except gdb.error:
            # The process runs, or its memory cannot be written, as in a core file.
            self.text = None
        if not Log.has_room(text):
            say("too many breakpoints to announce: the process now registers all code with gdb, which is slower")

    def counted(self):
        counted = [log.changes() for log in self.logs]
        return None if None in counted or not counted else counted

    def refresh(self):
        """Brings in code that is new. Returns whether this was possible."""
        changes = self.counted()
        answer = SERVER.ask({
            "op": "sync",
            "inferior": self.number,
            "of": self.subject,
            "registered": registered_codes(),
            "pc": stopped_at(),
        })
        if answer is None:
            return False
        if self.server != SERVER.starts:
            self.forget_files()
            self.server = SERVER.starts
        for path in answer["remove"]:
            forget_file(path)
        for path in answer["add"]:
            read_file(path)
        gone = set(answer["remove"])
        self.files = [path for path in self.files if path not in gone] + answer["add"]
        for note in answer["notes"]:
            say(note)
        for address in answer["logs"]:
            log = Log(address)
            if "pid" in self.subject and log.takes_breakpoints():
                self.add_log(log)
        all_counted = len(answer["logs"]) == len(self.logs) and answer["files"] == 0
        self.changes = changes if all_counted else None
        self.answer = answer
        return True

    def may_be_plain(self, symbol):
        """Whether this answer of `info symbol` is about code of ours, which may have no unwind info."""
        if not self.answer or not self.answer["plain"]:
            return False
        return symbol.rstrip().rsplit(" of ", 1)[-1] in self.files

    def is_current(self):
        return self.is_fresh or self.changes is not None and self.changes == self.counted()

    def forget(self):
        """The process has ended, or runs another program."""
        registers = any(log.registers for log in self.logs)
        SERVER.ask({"op": "forget", "inferior": self.number, "registers": registers})
        if self.space.is_valid() and self.space == gdb.current_progspace():
            self.forget_files()

    def forget_files(self):
        for path in self.files:
            forget_file(path)
        self.files = []


def quoted(path):
    """A word of gdb's command line. The path is one that the server made, in the user's $TMPDIR."""
    return '"%s"' % path.replace("\\", "\\\\").replace('"', '\\"')


def read_file(path):
    gdb.execute("add-symbol-file %s" % quoted(path), to_string=True)


def forget_file(path):
    try:
        gdb.execute("remove-symbol-file %s" % quoted(path), to_string=True)
    except gdb.error:
        # gdb forgot it by itself.
        pass


SERVER = Server()
INFERIORS = {}


def subject_of(inferior):
    """What the server can read: a process of this machine, or a core file."""
    target = gdb.execute("info target", to_string=True)
    core = re.search(r"^Local core dump file:\s+`(.*)', file type", target, re.MULTILINE)
    if core:
        return {"core": core.group(1)}
    connection = getattr(inferior, "connection", None)
    if inferior.pid and (connection is None or connection.type == "native"):
        return {"pid": inferior.pid}
    return None


def current():
    """The selected inferior; None if it has no process that can be read."""
    inferior = gdb.selected_inferior()
    if not inferior.pid:
        return None
    known = INFERIORS.get(inferior.num)
    if known is not None and known.subject.get("pid") == inferior.pid:
        return known
    subject = subject_of(inferior)
    if subject is None:
        return None
    if known is not None and known.subject == subject:
        return known
    if known is not None:
        known.forget()
    INFERIORS[inferior.num] = Inferior(inferior.num, subject)
    return INFERIORS[inferior.num]


def at_stop():
    """Brings in what is new, unless nothing has changed."""
    inferior = current()
    if inferior is None or inferior.is_current():
        return
    if inferior.refresh():
        inferior.is_fresh = True
        inferior.request()


def on_cont(_):
    for inferior in INFERIORS.values():
        inferior.is_fresh = False
    UNWINDER.forget_rules()


def on_new_objfile(event):
    """A log locator appears when a scribe is created, before it announces anything; and again when code with a breakpoint came
    or went. There is no other notice of a core file before gdb prints its first frame than that of its libraries."""
    log = log_of(event.new_objfile)
    is_known = gdb.selected_inferior().num in INFERIORS
    if log is None and is_known:
        return
    inferior = current()
    if inferior is None:
        return
    if log is None:
        if "core" in inferior.subject:
            inferior.refresh()
    elif inferior.add_log(log):
        inferior.request()
    else:
        inferior.refresh()


def on_breakpoint(_):
    inferior = INFERIORS.get(gdb.selected_inferior().num)
    if inferior is not None:
        inferior.request()


def on_exited(event):
    inferior = INFERIORS.pop(event.inferior.num, None)
    if inferior is not None:
        inferior.forget()


def on_stop(_):
    """The user may have defined another hook since."""
    chain_hook()
    run_at_stop()


def run_at_stop():
    try:
        at_stop()
    except gdb.error as error:
        say(error)


# The command that gdb runs at each stop.
OURS = "jitscribe at-stop"


def chain_hook():
    """Makes gdb run our command at each stop, before it prints, and then what the user's hook does."""
    lines = hook_lines()
    if OURS not in lines:
        gdb.execute("define hook-stop\n%s\nend" % "\n".join([OURS] + lines))


def hook_lines():
    """The commands of the hook. To ask for it by name is an error where there is none, and an error within `run` makes gdb take the
    program as stopped (`async_enable_stdin` in its python/python.c): this script may be started by a library that the program loads."""
    commands = gdb.execute("show user", to_string=True).split('User command "')
    hook = next((text for text in commands if text.startswith('hook-stop":')), "")
    # Behind the first line, each is indented by two blanks.
    return [line[2:] for line in hook.splitlines()[1:] if line.strip()]


class Jitscribe(gdb.Command):
    """JIT-compiled code: jitscribe info, jitscribe refresh."""

    def __init__(self):
        super().__init__("jitscribe", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


class Refresh(gdb.Command):
    """Reads the process's JIT-compiled code again, and says how much there is."""

    def __init__(self):
        super().__init__("jitscribe refresh", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        inferior = current()
        if inferior is None:
            raise gdb.GdbError("There is no process or core file on this machine.")
        if inferior.refresh():
            inferior.request()
            describe(inferior)


class Info(gdb.Command):
    """Says how many JIT-compiled functions gdb has been told of."""

    def __init__(self):
        super().__init__("jitscribe info", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        inferior = current()
        if inferior is None:
            raise gdb.GdbError("There is no process or core file on this machine.")
        describe(inferior)


class AtStop(gdb.Command):
    """Brings in new JIT-compiled code. gdb runs this at each stop."""

    def __init__(self):
        super().__init__("jitscribe at-stop", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        run_at_stop()


def describe(inferior):
    answer = inferior.answer
    if answer is None:
        say("nothing read yet; type `jitscribe refresh`")
        return
    say("%d codes in %d symbol files, from %d code logs and %d other files; %d more registered by the process" % (
        answer["codes"], answer["symbol_files"], len(answer["logs"]), answer["files"], len(registered_codes())))
    if inferior.logs and inferior.text is not None and Log.has_room(inferior.text):
        say("the process calls gdb for code with breakpoints (%d places)" % inferior.text.count(b"\n"))


def start():
    # For the file by which gdb starts this script itself when a program loads libjitscribe.
    gdb.jitscribe_is_started = True
    Jitscribe(), Refresh(), Info(), AtStop()
    chain_hook()
    gdb.events.new_objfile.connect(on_new_objfile)
    gdb.events.exited.connect(on_exited)
    gdb.events.breakpoint_created.connect(on_breakpoint)
    gdb.events.breakpoint_modified.connect(on_breakpoint)
    gdb.events.breakpoint_deleted.connect(on_breakpoint)
    gdb.events.stop.connect(on_stop)
    register_unwinder(None, UNWINDER, replace=True)
    gdb.events.new_objfile.connect(UNWINDER.forget)
    gdb.events.clear_objfiles.connect(UNWINDER.forget)
    gdb.events.cont.connect(on_cont)
    # gdb may be attaching right now, and start this because of a library of the process.
    run_at_stop()
