

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
    """Unwinds code that gdb has no unwind info for: V8's builtins, and code that was made since the last refresh."""

    # The most bytes of a function that are read.
    LARGEST = 1 << 16
    # How many bytes behind an address are searched for the prologue.
    BEHIND = 1 << 10
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
            return known and self.unwound(pending, known[0], known[1], pc)
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
        if code["rules"] is None:
            return self.by_frame_pointer(code["start"], pc)
        register, offset = code["rules"]["cfa"]
        saved = {self.REGISTERS[number]: at for number, at in code["rules"]["saved"] if number < 17}
        return Stack(self.REGISTERS[register], offset, saved), code["start"]

    def by_frame_pointer(self, start, pc):
        if pc - start > self.LARGEST:
            return FRAME, start
        inferior = gdb.selected_inferior()
        code = bytes(inferior.read_memory(start, pc - start + 8))
        try:
            code += bytes(inferior.read_memory(start + len(code), self.BEHIND))
        except gdb.error:
            # The end of the memory.
            pass
        rule = frame_pointer_rule(code, pc - start)
        return rule and (rule, start)

    @staticmethod
    def unwound(pending, rule, start, pc):
        base = pending.read_register(rule.register)
        sp = int(base) + rule.offset
        info = pending.create_unwind_info(FrameId(gdb.Value(sp), gdb.Value(start)))
        for register, offset in rule.saved.items():
            content = bytes(gdb.selected_inferior().read_memory(sp + offset, 8))
            value = gdb.Value(int.from_bytes(content, "little"))
            info.add_saved_register(register, value.cast(pc.type if register == "rip" else base.type))
        if rule.jump is not None:
            info.add_saved_register("rip", pending.read_register(rule.jump).cast(pc.type))
        info.add_saved_register("rsp", gdb.Value(sp).cast(base.type))
        return info


def is_in_file(pc):
    """Whether a file on disk is mapped there: gdb has its unwind info."""
    return gdb.current_progspace().solib_name(pc) is not None


UNWINDER = CodeUnwinder()
