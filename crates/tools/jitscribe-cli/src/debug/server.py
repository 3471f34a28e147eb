# jitscribe's scripts for gdb and lldb begin with this: the server that they ask for symbol files.

import json
import subprocess

# The command to run; `jitscribe debug` sets it to its own path.
COMMAND = globals().get("COMMAND", "jitscribe")
# Options for it: the files that the user named.
SOURCES = globals().get("SOURCES", [])


class ServerProcess:
    """The process that reads code and writes symbol files. It ends with the debugger."""

    def __init__(self):
        self.process = None

    def start(self):
        # In a session of its own, Ctrl-C does not reach it.
        self.process = subprocess.Popen(
            [COMMAND, "debug", "--serve"] + SOURCES,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def exchange(self, request):
        """The answer to a request. OSError and ValueError if there is none."""
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


