"""Functions that call leaves in quick alternation, and whatever else changes the stack quickly.

A sampler that reads a stack while it changes shows calls that there are not: `a` calls only `a_leaf`, `b` only `b_leaf`.
"""
import contextlib
import functools
import re

import telling
import working
from telling import now


def a_leaf(n):
    while n:
        n -= 1
    return n


def b_leaf(n):
    while n:
        n -= 1
    return n


def a(n):
    return a_leaf(n)


def b(n):
    return b_leaf(n)


def alternate(size, taken):
    for _ in range(size):
        a(3)
        b(3)


def even(n):
    return odd(n - 1) if n else 0


def odd(n):
    return even(n - 1) if n else 1


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recurse(size, taken):
    for _ in range(size):
        even(24)
        fibonacci(7)


def ones(n):
    for _ in range(n):
        yield 1


def delegating(n, depth):
    if depth:
        yield from delegating(n, depth - 1)
    else:
        yield from ones(n)


def squares(n):
    return (value * value for value in delegating(n, 3))


def generate(size, taken):
    for _ in range(size):
        sum(squares(6))
        [value for value in ones(4)]
        for value in ones(4):
            a_leaf(value)


def thrower(depth):
    if depth:
        thrower(depth - 1)
    raise KeyError(depth)


def cleaner(depth):
    try:
        thrower(depth)
    finally:
        b_leaf(1)


def handler(error):
    return len(error.args)


def throw(size, taken):
    for _ in range(size):
        try:
            cleaner(5)
        except KeyError as error:
            handler(error)


class Counter:
    count = 0

    def __init__(self):
        self.values = [1, 2]

    def __getattr__(self, name):
        return self.missing_leaf(len(name))

    def missing_leaf(self, n):
        return n

    @property
    def first(self):
        return self.values[0]

    def __add__(self, other):
        return self.first + other

    def __len__(self):
        return self + 1

    def __iter__(self):
        return iter(self.values)

    def __call__(self):
        return len(self)

    def __del__(self):
        Counter.count += 1


class Made:
    def __init__(self, n):
        self.n = a_leaf(n)


def make(size, taken):
    """From 3.12 on without C between, and with a frame that is no function's."""
    for number in range(size):
        Made(number & 3)


def methods(size, taken):
    for _ in range(size):
        counter = Counter()
        counter()
        counter.absent
        list(counter)
        del counter


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        return function(*arguments, **named)

    return wrapper


@decorated
def wrapped(n, more=0):
    return a_leaf(n)


@contextlib.contextmanager
def managed():
    b_leaf(1)
    yield
    b_leaf(2)


def wrap(size, taken):
    for _ in range(size):
        wrapped(1, more=2)
        with managed():
            a_leaf(1)


def key(n):
    return -n


def plus(left, right):
    return left + right


def nested_key(n):
    return sum(map(key, (n, n + 1)))


def replaced(match):
    return match.group().upper()


NUMBERS = list(range(8))
PATTERN = re.compile("b")


def through_c(size, taken):
    for _ in range(size):
        sorted(NUMBERS, key=key)
        functools.reduce(plus, NUMBERS)
        max(NUMBERS, key=nested_key)
        PATTERN.sub(replaced, "abcb")


class Step:
    def __await__(self):
        yield 1


async def inner(n):
    await Step()
    return a_leaf(n)


async def middle(n):
    return await inner(n) + 1


async def outer(n):
    return await middle(n) + 1


def coroutines(size, taken):
    for _ in range(size):
        coroutine = outer(2)
        coroutine.send(None)
        try:
            coroutine.send(None)
        except StopIteration:
            pass


def give(*values):
    return values


def lines(size, taken):
    """Each kind of line takes another part of the time."""
    # fmt: off
    t0 = now()
    sum(range(size * 12))  # BUSY 0
    t1 = now()
    n = size
    while n: n -= 1  # BUSY 1
    t2 = now()
    a_leaf(size * 2)  # BUSY 2
    t3 = now()
    give(  # BUSY 3
        a_leaf(size),  # BUSY 3
        b_leaf(  # BUSY 3
            size,  # BUSY 3
        ),  # BUSY 3
        len([0 for _ in range(size)]),  # BUSY 3
    )  # BUSY 3
    t4 = now()
    for n in range(size): b_leaf(1)  # BUSY 4
    t5 = now()
    # fmt: on
    for number, seconds in enumerate((t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4)):
        taken[number] = taken.get(number, 0) + seconds


# Who calls whom by way of C, and without it from 3.11 on.
THROUGH_C = [["through_c", "key"], ["through_c", "plus"], ["through_c", "nested_key"], ["nested_key", "key"]]
DIRECT = [["alternate", "a"], ["alternate", "b"], ["a", "a_leaf"], ["b", "b_leaf"], ["even", "odd"], ["odd", "even"]]
DIRECT += [["fibonacci", "fibonacci"], ["thrower", "thrower"], ["cleaner", "thrower"], ["throw", "cleaner"]]

if __name__ == "__main__":
    telling.say(through_c=THROUGH_C, direct=DIRECT)
    working.main([alternate, recurse, generate, throw, make, methods, wrap, through_c, coroutines, lines])
