"""Calls of all kinds: what is between two Python functions is the interpreter itself, or C."""
import contextlib
import functools
import sys
import threading
import time
import weakref
import _thread

from parking import case, hold


@case()
def worker():
    hold.acquire()  # PARKS


@case()
def sleeper():
    time.sleep(10 ** 6)  # PARKS


@case(start=lambda case: _thread.start_new_thread(case.run, ()))
def bare_thread():
    hold.acquire()  # PARKS


@case(mark="acquire(")
def event():
    threading.Event().wait()


def down(depth):
    if depth:
        return down(depth - 1)
    hold.acquire()  # PARKS


@case()
def deep():
    down(900)


def by_sorting(depth):
    if depth:
        return sorted([depth - 1], key=by_sorting)
    hold.acquire()  # PARKS


@case()
def deep_through_c():
    by_sorting(60)


def numbers(count):
    for number in range(count):
        yield add(number, number)


def add(left, right):
    return functools.reduce(park_at_two, [left, right], 0)


def park_at_two(left, right):
    if right == 2:
        hold.acquire()  # PARKS
    return left + right


@case()
def re_entries():
    sorted(numbers(4), key=lambda number: number)


@case()
def re_entries_in_a_key():
    def key(number):
        return sum(add(number, other) for other in range(3))

    max([1, 5], key=key)


def chain(depth):
    if depth:
        yield from chain(depth - 1)
    else:
        yield 1
        hold.acquire()  # PARKS


@case()
def yield_from():
    for _ in chain(50):
        pass


@case()
def generator_closed():
    def closing():
        try:
            yield
        finally:
            hold.acquire()  # PARKS

    generator = closing()
    next(generator)
    generator.close()


@case()
def generator_thrown_into():
    def catching():
        try:
            yield
        except KeyError as error:
            str(error)
            hold.acquire()  # PARKS

    generator = catching()
    next(generator)
    generator.throw(KeyError("thrown"))


@case()
def generator_of_another_thread():
    def waiting():
        yield 1
        hold.acquire()  # PARKS

    generator = waiting()
    other = threading.Thread(target=next, args=(generator,))
    other.start()
    other.join()
    next(generator)


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        return made.method()


class Base(metaclass=Meta):
    def __init__(self, key):
        self.key = key

    def method(self):
        return self.by_class(self.key)

    @classmethod
    def by_class(cls, key):
        return cls.by_none(key)

    @staticmethod
    def by_none(key):
        return Base.Nested()[key]

    class Nested:
        def __getitem__(self, key):
            return self.value

        @property
        def value(self):
            return self + 1

        def __add__(self, other):
            return self.missing

        def __getattr__(self, name):
            return {self: 1}

        def __hash__(self):
            return self("called")

        def __call__(self, what):
            hold.acquire()  # PARKS


class Derived(Base):
    def method(self):
        return super().method()


@case()
def methods():
    Derived("key")


@case()
def comparisons():
    class Item:
        def __lt__(self, other):
            return bool(self)

        def __bool__(self):
            return len(self) > 0

        def __len__(self):
            hold.acquire()  # PARKS

    [Item(), Item()].sort()


@case()
def finalizer():
    class Dying:
        def __del__(self):
            hold.acquire()  # PARKS

    dying = Dying()
    del dying


@case()
def weak_reference():
    class Thing:
        pass

    def gone(_):
        hold.acquire()  # PARKS

    thing = Thing()
    reference = weakref.ref(thing, gone)
    del thing


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@case()
def closures_and_decorators():
    outer = 1

    @decorated
    @functools.lru_cache(maxsize=None)
    @decorated
    def inner(argument, *, named=2):
        nonlocal outer
        outer += argument
        return (lambda: (lambda value: hold.acquire())(named))()  # PARKS

    functools.partial(inner, 1)(named=3)


@case()
def comprehensions():
    def blocking(value):
        hold.acquire()  # PARKS

    {x: [y for y in {z for z in (blocking(w) for w in [1])}] for x in range(2)}


@case()
def iterators():
    class Counting:
        def __iter__(self):
            return self

        def __next__(self):
            hold.acquire()  # PARKS

    list(map(str, filter(None, zip(Counting(), Counting()))))


@case()
def context_managers():
    @contextlib.contextmanager
    def managed():
        try:
            yield
        finally:
            hold.acquire()  # PARKS

    with contextlib.ExitStack() as stack:
        stack.enter_context(managed())
        with managed():
            stack.close()


@case()
def class_body():
    class Outer:
        class Inner:
            hold.acquire()  # PARKS


@case()
def evaluated():
    eval("eval('park()', {'park': park})", {"park": lambda: hold.acquire()})  # PARKS


@case()
def traced():
    def trace(frame, event, argument):
        hold.acquire()  # PARKS

    def function():
        return 1

    sys.settrace(trace)
    function()


@case()
def profiled():
    def profile(frame, event, argument):
        if event == "c_call" and argument is len:
            hold.acquire()  # PARKS

    sys.setprofile(profile)
    len("")


@case(since=(3, 12))
def monitored():
    tool, events = sys.monitoring.DEBUGGER_ID, sys.monitoring.events

    def started(code, offset):
        hold.acquire()  # PARKS

    def function():
        return 1

    sys.monitoring.use_tool_id(tool, "park")
    sys.monitoring.register_callback(tool, events.PY_START, started)
    sys.monitoring.set_local_events(tool, function.__code__, events.PY_START)
    function()
