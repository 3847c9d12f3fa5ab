"""Cases that matter to who looks while they run: Python below C below Python, and names that come twice."""
import functools
import json
import re
import sys

from parking import case, hold


@case()
def substituted():
    def replace(match):
        hold.acquire()

    re.sub("b+", replace, "abbc")


@case()
def mapped_and_reduced():
    def combine(left, right):
        return left + right if right < 3 else hold.acquire()

    functools.reduce(combine, map(lambda number: number + 1, filter(None, range(5))))


@case()
def encoded():
    def default(value):
        hold.acquire()

    json.dumps([{"a": object()}], default=default)


@case()
def decoded():
    json.loads('[{"a": 1}]', object_hook=lambda value: hold.acquire())


@case()
def sorted_within_sorted():
    def outer(number):
        return sorted([number], key=lambda value: inner(value))

    def inner(number):
        return min([number], key=innermost)

    def innermost(number):
        hold.acquire()

    max([1], key=outer)


def twice(depth):
    return other_twice(depth)


def other_twice(depth):
    return twice(depth - 1) if depth else hold.acquire()


@case()
def in_turn():
    """Two functions that call each other: a chain that lacks or doubles one shows."""
    twice(40)


@case()
def in_turn_through_c():
    def left(depth):
        return list(map(right, [depth]))

    def right(depth):
        return max([depth - 1], key=left) if depth else hold.acquire()

    left(30)


@case()
def generators_of_generators():
    def outer(depth):
        for value in outer(depth - 1) if depth else last():
            yield value

    def last():
        yield hold.acquire()

    sum(value for value in outer(20))


@case()
def raised_and_caught():
    def raising(depth):
        if depth:
            try:
                raising(depth - 1)
            finally:
                str(depth)
        raise KeyError(depth)

    try:
        raising(20)
    except KeyError:
        try:
            raising(3)
        except KeyError as error:
            hold.acquire()


@case()
def of_one_name():
    def function(deeper):
        return deeper(int) if deeper is not int else hold.acquire()

    first = function

    def function(deeper):
        return deeper(first)

    function(first)


@case()
def on_one_line():
    (lambda: (lambda: [(lambda value: hold.acquire())(value) for value in (1,)])())()


@case()
def imported():
    class Finder:
        def find_spec(self, name, path, target=None):
            if name == "not_to_be_found":
                hold.acquire()

    sys.meta_path.insert(0, Finder())
    import not_to_be_found


@case()
def called_when_made():
    class Made:
        def __new__(cls):
            return cls.made()

        @classmethod
        def made(cls):
            return cls.__init_subclass__()

        def __init_subclass__(cls, **named):
            hold.acquire()

        __slots__ = ()

    class Sub(Made):
        pass


@case()
def described():
    class Descriptor:
        def __get__(self, instance, owner):
            return instance["key"]

        def __set_name__(self, owner, name):
            owner.name = name

    class Has:
        described = Descriptor()

        def __getitem__(self, key):
            return format(self, key)

        def __format__(self, spec):
            return repr(self)

        def __repr__(self):
            return str(self.__bytes__())

        def __bytes__(self):
            hold.acquire()

    Has().described
