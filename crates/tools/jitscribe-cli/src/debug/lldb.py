# jitscribe: shows lldb the JIT-compiled code of the debugged process.
#
# At each stop, before lldb prints anything, this script asks `jitscribe debug --serve` for symbol files of the code that is new.
# Commands: `jitscribe info`, `jitscribe refresh`.

import lldb

# The core file; `jitscribe debug` sets it, as lldb 19 does not tell.
CORE = globals().get("CORE")
# Where lldb finds this script's functions.
HERE = __name__


class Server(ServerProcess):
    """The server, which is not started again if it failed."""

    def __init__(self):
        super().__init__()
        self.is_missing = False

    def ask(self, request):
        """The answer to a request; None if there is no server."""
        if self.is_missing:
            return None
        try:
            return self.exchange(request)
        except (OSError, ValueError) as error:
            self.is_missing = True
            print("jitscribe: the server %s: %s" % (COMMAND, error))
        return None


SERVER = Server()


def registered_codes(target):
    """Address and size of the codes that the process itself registered."""
    codes = []
    for module in target.module_iter():
        if not (module.GetFileSpec().GetFilename() or "").startswith("JIT("):
            continue
        for symbol in module:
            start = symbol.GetStartAddress().GetLoadAddress(target)
            end = symbol.GetEndAddress().GetLoadAddress(target)
            if symbol.GetType() == lldb.eSymbolTypeCode and start < end != lldb.LLDB_INVALID_ADDRESS:
                codes.append((start, end - start))
    return codes


def stopped_at(process):
    """Where the process was stopped; None if this is not known."""
    pc = process.GetSelectedThread().GetFrameAtIndex(0).GetPC()
    return None if pc == lldb.LLDB_INVALID_ADDRESS else pc


class Process:
    """What lldb has been told about the code of one process."""

    def __init__(self, target, subject):
        self.target = target
        self.subject = subject
        self.modules = {}
        self.answer = None

    def refresh(self):
        """Brings in code that is new."""
        answer = SERVER.ask({
            "op": "sync",
            "inferior": self.target.GetProcess().GetUniqueID(),
            "of": self.subject,
            "registered": registered_codes(self.target),
            "pc": stopped_at(self.target.GetProcess()),
        })
        if answer is None:
            return
        for path in answer["remove"]:
            self.forget(path)
        for path in answer["add"]:
            self.read(path)
        for note in answer["notes"]:
            print("jitscribe: %s" % note)
        self.answer = answer

    def read(self, path):
        module = self.target.AddModule(path, None, None)
        if module.IsValid():
            # The addresses in the file are those in the process.
            self.target.SetModuleLoadAddress(module, 0)
            self.modules[path] = module

    def forget(self, path):
        module = self.modules.pop(path, None)
        if module is not None:
            self.target.ClearModuleLoadAddress(module)
            self.target.RemoveModule(module)

    def describe(self):
        answer = self.answer
        if answer is None:
            return "nothing read yet; type `jitscribe refresh`"
        return "%d codes in %d symbol files, from %d code logs and %d other files; %d more registered by the process" % (
            answer["codes"], answer["symbol_files"], len(answer["logs"]), answer["files"],
            len(registered_codes(self.target)))


PROCESSES = {}


def current(target):
    """The target's process; None if it has none that can be read."""
    process = target.GetProcess()
    if not process.IsValid() or process.GetProcessID() == lldb.LLDB_INVALID_PROCESS_ID:
        return None
    known = PROCESSES.get(process.GetUniqueID())
    if known is None:
        core = process.GetCoreFile() if hasattr(process, "GetCoreFile") else None
        if process.GetPluginName() == "elf-core":
            path = core.fullpath if core is not None and core.IsValid() else CORE
            subject = {"core": path} if path else None
        else:
            subject = {"pid": process.GetProcessID()}
        if subject is None:
            return None
        known = PROCESSES[process.GetUniqueID()] = Process(target, subject)
    return known


class StopHook:
    """Brings in new JIT-compiled code. lldb runs this at each stop."""

    def __init__(self, target, extra_args, internal_dict):
        pass

    def handle_stop(self, context, stream):
        process = current(context.GetTarget())
        if process is not None:
            process.refresh()
        return True


def jitscribe(debugger, command, result, internal_dict):
    """JIT-compiled code: jitscribe info, jitscribe refresh."""
    process = current(debugger.GetSelectedTarget())
    if process is None:
        result.SetError("There is no process or core file on this machine.")
    elif command.strip() == "refresh":
        process.refresh()
        print("jitscribe: " + process.describe())
    elif command.strip() == "info":
        print("jitscribe: " + process.describe())
    else:
        result.SetError("type `jitscribe info` or `jitscribe refresh`")


def __lldb_init_module(debugger, internal_dict):
    debugger.HandleCommand("command script add -f %s.jitscribe jitscribe" % HERE)
    # On the dummy target, which every new target copies.
    debugger.HandleCommand("target stop-hook add -P %s.StopHook" % HERE)
