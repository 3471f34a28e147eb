"""Calls functions all the time. For each line that it reads, it prints whether trampolines are on."""
import select
import sys


def inner(number):
    total = 0
    for i in range(number):
        total += i * i
    return total


def middle(number):
    return inner(number) + 1


print("ready", flush=True)
while True:
    for _ in range(20):
        middle(2000)
    if select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline():
            break
        print("on" if sys.is_stack_trampoline_active() else "off", flush=True)
