"""Compiles regular expressions with PCRE2's JIT compiler. Prints what PCRE2 says of each (the bytes of its machine code, and the pattern) and `ready`, and goes on."""
import ctypes
import time

CASELESS, UTF, UCP = 0x8, 0x80000, 0x20000
JIT_COMPLETE, INFO_JITSIZE = 1, 10
PATTERNS = [
    (r"abc", 0),
    (r"(\w+)-agent:\s+([a-z]+)\s+(\d{3,5})", CASELESS),
    (r"^(?<year>\d{4})-(?<month>\d\d)$", 0),
    (r"(a|b)*(c)?(?:d|e)+?(?>f)(?!g)(?<=h)(?<!i)", 0),
    (r"\p{Lu}\w+é\d{2,}x{3,4}?[^b-d]", UTF | UCP),
    (r"(x)(?1)\1[\sa-f]*\Bfoo\b|\A.$", 0),
]

pcre2 = ctypes.CDLL("libpcre2-8.so.0")
compile_pattern = pcre2.pcre2_compile_8
compile_pattern.restype = ctypes.c_void_p
compile_pattern.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
pcre2.pcre2_jit_compile_8.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
pcre2.pcre2_pattern_info_8.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]

for pattern, options in PATTERNS:
    error, place, size = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()
    text = pattern.encode()
    code = compile_pattern(text, len(text), options, ctypes.byref(error), ctypes.byref(place), None)
    assert code and pcre2.pcre2_jit_compile_8(code, JIT_COMPLETE) == 0, pattern
    assert pcre2.pcre2_pattern_info_8(code, INFO_JITSIZE, ctypes.byref(size)) == 0 and size.value, pattern
    print(size.value, ("(?i)" if options & CASELESS else "") + pattern, flush=True)
print("ready", flush=True)
time.sleep(600)
