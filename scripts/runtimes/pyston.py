import pyston_lite

pyston_lite.enable()


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def inner(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 1000003
    return total


for _ in range(10):
    fib(24)
    inner(300000)
