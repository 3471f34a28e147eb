

# Unwinding of code without unwind info.

class FrameId:
    """Identifies a frame: the stack pointer in its caller, and where its code begins."""

    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class Stack:
    """Where the caller's frame begins, relative to a register, and where what was saved lies, relative to that."""

    def __init__(self, register, offset, saved, jump=None):
        self.register = register
        self.offset = offset
        # Which registers were saved, and at which offsets from there.
        self.saved = saved
        # The register with the return address, if it is not on the stack.
        self.jump = jump


# The return address is on top of the stack.
AT_ENTRY = Stack("rsp", 8, {"rip": -8})
# push rbp was executed.
PUSHED = Stack("rsp", 16, {"rip": -8, "rbp": -16})
# rbp points to the caller's.
FRAME = Stack("rbp", 16, {"rip": -8, "rbp": -16})
# The return address was popped into rcx.
POPPED = Stack("rsp", 0, {}, "rcx")

PROLOGUE = re.compile(rb"\x55(?:\x48\x89\xe5|\x48\x8b\xec)")
# What V8 does to drop its arguments: pop rcx, (lea rsp, …), push rcx, ret.
DROP = re.compile(rb"\x59(?:\x48\x8d.{2}|\x4a\x8d.{2}|\x48\x8d.{3})?\x51(?:\xc3|\xc2)", re.DOTALL)


def frame_pointer_rule(code, offset):
    """How to unwind code that keeps a frame pointer, at an offset of its bytes; None if it has no prologue. The bytes end some
    way behind the offset."""
    before, behind = code[:offset], code[offset:]
    prologue = PROLOGUE.search(code)
    if prologue is None:
        return None
    if offset <= prologue.start() or behind[:1] in (b"\xc3", b"\xc2"):
        return AT_ENTRY
    if offset == prologue.start() + 1:
        return PUSHED
    if before[-1:] in (b"\xc9", b"\x5d") and behind[:1] == b"\x59":
        return AT_ENTRY
    nearby = max(0, offset - 8)
    for drop in DROP.finditer(code, nearby):
        if drop.start() < offset < drop.end() - 1:
            return POPPED
    return FRAME


# A call instruction at the end of the bytes.
CALL = re.compile(
    rb"(?:\xe8.{4}|\xff(?:[\xd0-\xd7]|[\x10-\x13\x16\x17]|\x14.|\x15.{4}|[\x50-\x53\x55-\x57].|\x54.."
    rb"|[\x90-\x93\x95-\x97].{4}|\x94.{5}))\Z",
    re.DOTALL,
)


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def number_at(address):
    return int.from_bytes(read(address, 8), "little")


class Guess:
    """Rules of which the first is taken that leads behind a call instruction. If none does, it is `otherwise`."""

    def __init__(self, rules, otherwise):
        self.rules = rules
        self.otherwise = otherwise

    def rule(self, pending):
        return next((rule for rule in self.rules if self.holds(rule, pending)), self.otherwise)

    @staticmethod
    def holds(rule, pending):
        if rule.jump is not None:
            return True
        stack = int(pending.read_register("rsp"))
        sp = int(pending.read_register(rule.register)) + rule.offset
        # No frame is larger than this.
        if not stack < sp < stack + (1 << 30):
            return False
        try:
            caller = number_at(sp + rule.saved["rip"])
            return CALL.search(read(caller - 8, 8)) is not None
        except (gdb.error, OverflowError):
            return False


class Builtins:
    """V8's builtins: code in the executable that keeps a frame pointer, without unwind info."""

    START = "v8_Default_embedded_blob_code_"

    def __init__(self):
        self.range = None

    def contains(self, pc):
        if self.range is None:
            self.range = self.find()
        return pc in self.range

    def find(self):
        try:
            start = int(gdb.parse_and_eval("(unsigned long)&%s" % self.START))
            size = int(gdb.parse_and_eval("*(unsigned int *)&%ssize_" % self.START))
            return range(start, start + size)
        except gdb.error:
            return range(0)


class CodeUnwinder(Unwinder):
    """Unwinds code that gdb has no unwind info for: V8's builtins, code that was made since the last refresh, and code that nothing
    announces."""

    # The most bytes of a function that are read.
    LARGEST = 1 << 16
    # How many bytes behind an address are searched for the prologue.
    BEHIND = 1 << 10
    # How many bytes before an address are searched for the prologue of code of which nothing is known.
    BEFORE = 1 << 14
    # Numbers of registers in DWARF.
    REGISTERS = (
        "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
        "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
    )

    def __init__(self):
        super().__init__("jitscribe")
        self.forget()

    def forget(self, _=None):
        """The symbols changed."""
        self.builtins = Builtins()
        self.forget_rules()

    def forget_rules(self, _=None):
        """The code may change."""
        # By address: the rule, and where the function begins; None if gdb knows how to unwind it.
        self.rules = {}

    def __call__(self, pending):
        try:
            pc = pending.read_register("rip")
            known = self.rule(int(pc))
            if known is None:
                return None
            rule, start = known
            if isinstance(rule, Guess):
                rule = rule.rule(pending)
            return rule and self.unwound(pending, rule, start, pc)
        except (gdb.error, ValueError):
            # Another machine, or a stack that cannot be read.
            return None

    def rule(self, pc):
        if pc not in self.rules:
            self.rules[pc] = self.find(pc)
        return self.rules[pc]

    def find(self, pc):
        symbol = gdb.execute("info symbol %d" % pc, to_string=True)
        if self.builtins.contains(pc):
            found = re.search(r" \+ (\d+) in section ", symbol)
            start = pc - int(found.group(1)) if found else pc
            return self.by_frame_pointer(start, pc) or (AT_ENTRY, start)
        inferior = INFERIORS.get(gdb.selected_inferior().num)
        if inferior is None:
            return None
        is_unknown = symbol.startswith("No symbol matches")
        if is_unknown and not is_in_file(pc):
            return self.by_server(inferior, pc, False)
        if not is_unknown and inferior.may_be_plain(symbol):
            return self.by_server(inferior, pc, True)
        return None

    def by_server(self, inferior, pc, is_shown):
        answer = SERVER.ask({"op": "unwind", "inferior": inferior.number, "pc": pc, "shown": is_shown})
        code = answer and answer["code"]
        if not code:
            return None
        if code["start"] is None:
            return self.guessed(pc)
        if code["rules"] is None:
            start = code["start"]
            known = self.by_frame_pointer(start, pc)
            rule = known[0] if known else AT_ENTRY if pc == start else FRAME
            # V8's baseline code calls its prologue: if there is one here, it belongs to the next function.
            return Guess([rule, FRAME], rule), start
        register, offset = code["rules"]["cfa"]
        saved = {self.REGISTERS[number]: at for number, at in code["rules"]["saved"] if number < 17}
        return Stack(self.REGISTERS[register], offset, saved), code["start"]

    def by_frame_pointer(self, start, pc):
        if pc - start > self.LARGEST:
            return FRAME, start
        code = read(start, pc - start + 8)
        try:
            code += read(start + len(code), self.BEHIND)
        except gdb.error:
            # The end of the memory.
            pass
        rule = frame_pointer_rule(code, pc - start)
        return rule and (rule, start)

    def guessed(self, pc):
        """The rule for code that nothing announces. Its beginning is the last prologue before the address."""
        begin = max(pc - self.BEFORE, 0)
        try:
            code = read(begin, pc - begin + 8)
        except gdb.error:
            # The memory begins later: at a page, at the latest that of the address.
            begin = pc & ~0xfff
            code = read(begin, pc - begin + 8)
        prologues = [found.start() for found in PROLOGUE.finditer(code) if found.start() <= pc - begin]
        if not prologues:
            return Guess([FRAME], None), pc
        start = begin + prologues[-1]
        rule = self.by_frame_pointer(start, pc)
        return rule and (Guess([rule[0], FRAME], None), start)

    @staticmethod
    def unwound(pending, rule, start, pc):
        base = pending.read_register(rule.register)
        sp = int(base) + rule.offset
        info = pending.create_unwind_info(FrameId(gdb.Value(sp), gdb.Value(start)))
        for register, offset in rule.saved.items():
            value = gdb.Value(number_at(sp + offset))
            info.add_saved_register(register, value.cast(pc.type if register == "rip" else base.type))
        if rule.jump is not None:
            info.add_saved_register("rip", pending.read_register(rule.jump).cast(pc.type))
        info.add_saved_register("rsp", gdb.Value(sp).cast(base.type))
        return info


def is_in_file(pc):
    """Whether a file on disk is mapped there: gdb has its unwind info."""
    return gdb.current_progspace().solib_name(pc) is not None


UNWINDER = CodeUnwinder()
