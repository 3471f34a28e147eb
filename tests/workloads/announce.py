"""Half a second of processor time in x86-64 machine code, announced by the C library at the path in the first argument."""
import ctypes
import mmap
import sys
import time


class Str(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Unwind(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("prologue", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("rows", ctypes.c_void_p),
        ("row_count", ctypes.c_size_t),
        ("eh_frame", ctypes.c_void_p),
        ("eh_frame_size", ctypes.c_size_t),
    ]


class Code(ctypes.Structure):
    """jitscribe_code of jitscribe.h."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
        ("name", Str),
        ("tier", Str),
        ("kind", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("files", ctypes.c_void_p),
        ("file_count", ctypes.c_size_t),
        ("lines", ctypes.c_void_p),
        ("line_count", ctypes.c_size_t),
        ("ir_lines", ctypes.c_void_p),
        ("ir_line_count", ctypes.c_size_t),
        ("inlined", ctypes.c_void_p),
        ("inlined_count", ctypes.c_size_t),
        ("unwind", Unwind),
    ]


# mov eax, edi; dec eax; jnz to the dec; ret
SPIN = bytes.fromhex("89f8 ffc8 75fc c3")

memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(SPIN)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))

library = ctypes.CDLL(sys.argv[1])
library.jitscribe_global.restype = ctypes.c_void_p
scribe = ctypes.c_void_p(library.jitscribe_global())
name = b"announced_by_python"
code = Code(
    struct_size=ctypes.sizeof(Code), size=len(SPIN), bytes=address, name=Str(name, len(name))
)
assert library.jitscribe_load(scribe, ctypes.byref(code), None) == 0

spin = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(address)
end = time.process_time() + 0.5
while time.process_time() < end:
    spin(1_000_000)
