"""What numba compiles: `python kernels.py [MODE] [SECONDS]`, of processor time.

MODE: plain, parallel, debug, cached (in $NUMBA_CACHE_DIR), forked (the kernel runs in a child), or endless.
"""

import math
import os
import sys
import time

import numba

mode = sys.argv[1] if len(sys.argv) > 1 else "plain"
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0


# Each call is kept, so that there are frames of callers.
@numba.njit(debug=mode == "debug", cache=mode == "cached")
def leaf(x, y):
    total = 0.0
    for i in range(200):
        total += math.sqrt(x * i) * y
    return total


@numba.njit(debug=mode == "debug", cache=mode == "cached", parallel=mode == "parallel")
def kernel(n):
    total = 0.0
    for i in numba.prange(n):
        total += leaf(float(i), 0.5)
    return total


def work():
    begin = time.process_time()
    while mode == "endless" or time.process_time() - begin < seconds:
        kernel(20000)


kernel(1)
print("ready", flush=True)
if mode == "forked":
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    sys.exit(status != 0)
work()
