"""Runs a command with system calls refused: CALL[,CALL...] ERROR COMMAND..."""
import ctypes, os, platform, struct, sys

# By machine: the architecture in a filter's data (linux/audit.h), and the calls.
X86_64 = {
    "perf_event_open": 298, "ptrace": 101, "bpf": 321, "mount": 165, "umount2": 166, "unshare": 272, "setns": 308, "pivot_root": 155, "userfaultfd": 323,
}
AARCH64 = {
    "perf_event_open": 241, "ptrace": 117, "bpf": 280, "mount": 40, "umount2": 39, "unshare": 97, "setns": 268, "pivot_root": 41, "userfaultfd": 282,
}
MACHINES = {"x86_64": (0xC000003E, X86_64), "aarch64": (0xC00000B7, AARCH64)}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2

architecture, numbers = MACHINES[platform.machine()]
calls = sys.argv[1].split(",")
# The number of a call is at offset 0 of the data, the architecture at 4.
program = [(LOAD, 0, 0, 4), (EQUAL, 0, len(calls) + 1, architecture), (LOAD, 0, 0, 0)]
for at, call in enumerate(calls):
    program.append((EQUAL, len(calls) - at, 0, numbers[call]))
program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE | int(sys.argv[2]))]
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
