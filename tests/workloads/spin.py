"""About a second of work in functions that call one another."""
import time


def leaf(n):
    return sum(range(n))


def middle(n):
    return leaf(n) + leaf(n + 1)


def outer(seconds):
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        total += middle(200)
    return total


print(outer(1.0))
