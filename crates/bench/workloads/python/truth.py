"""Functions that call leaves of their own in quick alternation: truth.py SECONDS

A profiler that prints a caller and a callee that are not in here has put parts of two stacks together.
"""
import sys
import time

from gate import gate_run


def a_leaf(n):
    for i in range(n):
        n ^= i
    return n


def b_leaf(n):
    for i in range(n):
        n ^= i
    return n


def c_leaf(n):
    for i in range(n):
        n ^= i
    return n


def d_leaf(n):
    for i in range(n):
        n ^= i
    return n


def e_leaf(n):
    for i in range(n):
        n ^= i
    return n


def f_leaf(n):
    raise KeyError(n)


def a(n):
    return a_leaf(n)


def b(n):
    return b_leaf(n)


def c_inner(n):
    return c_leaf(n)


def c(n):
    return c_inner(n)


def d(n, depth):
    if depth:
        return d(n, depth - 1)
    return d_leaf(n)


def e_generator(n):
    for _ in range(2):
        yield e_leaf(n)


def e(n):
    for value in e_generator(n):
        n ^= value
    return n


def f(n):
    try:
        f_leaf(n)
    except KeyError:
        return n


def g_key(n):
    return -n


def g(n):
    return sorted([n, 3, 1], key=g_key)[0]


def alternate():
    n = 5
    for _ in range(1000):
        a(n)
        b(n)
        c(n)
        d(n, 3)
        e(n)
        f(n)
        g(n)


def work():
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        alternate()


SECONDS = float(sys.argv[1])
gate_run(work)
