"""Functions that PyPy compiles to loops with bridges. With an argument, it says so when that was done, and goes on."""
import sys


def leaf(n):
    return n * 3 + 1


def loop(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += leaf(i)
        else:
            total -= 1
    return total


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def work(times):
    return sum(loop(20000) + fib(15) for _ in range(times))


print(work(200))
if len(sys.argv) > 1:
    print("warm", flush=True)
    while True:
        work(1)
else:
    print(work(8000))
