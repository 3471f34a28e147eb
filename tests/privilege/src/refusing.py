"""Runs a command with a system call refused: CALL ERROR COMMAND..."""
import ctypes, os, platform, struct, sys

# By machine: the architecture in a filter's data (linux/audit.h), and the calls.
MACHINES = {
    "x86_64": (0xC000003E, {"perf_event_open": 298}),
    "aarch64": (0xC00000B7, {"perf_event_open": 241}),
}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2

architecture, numbers = MACHINES[platform.machine()]
# The number of a call is at offset 0 of the data, the architecture at 4.
program = [
    (LOAD, 0, 0, 4),
    (EQUAL, 0, 3, architecture),
    (LOAD, 0, 0, 0),
    (EQUAL, 0, 1, numbers[sys.argv[1]]),
    (RETURN, 0, 0, REFUSE | int(sys.argv[2])),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
filter_ = Program(len(program), ctypes.addressof(code))
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
    sys.exit("no_new_privs: " + os.strerror(ctypes.get_errno()))
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_)) != 0:
    sys.exit("the filter: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[3], sys.argv[3:])
