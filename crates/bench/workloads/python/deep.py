"""Works at the end of a recursion of so many Python frames: deep.py HOW DEPTH SECONDS

HOW is `plain`, where a function calls itself, or `nested`, where each call goes through `sorted(key=)`: an eval loop of its
own, and native frames between. It works until it has had SECONDS of CPU time.
"""
import sys
import time

from gate import gate_run


def spin():
    end = time.process_time() + SECONDS
    x = 1
    while time.process_time() < end:
        for i in range(20000):
            x = (x * 5 + i) & 0xFFFFFF
    return x


def plain(depth):
    if depth <= 1:
        return spin()
    x = plain(depth - 1)
    return x


def nested(depth):
    if depth <= 1:
        return spin()
    return sorted([depth - 1], key=nested)[0]


def work():
    HOW(DEPTH)


HOW, DEPTH, SECONDS = globals()[sys.argv[1]], int(sys.argv[2]), float(sys.argv[3])
sys.setrecursionlimit(DEPTH * 4 + 1000)
gate_run(work)
