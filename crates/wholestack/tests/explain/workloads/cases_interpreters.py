"""Further interpreters in the process. Each tells of its threads itself; of the thread that entered it, also where that
thread is in the first interpreter."""
import sys

from parking import case, stack_of, told

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None

NEEDS = interpreters.__name__ if interpreters else "_xxsubinterpreters"

SCRIPT = """
import os, sys, threading
sys.path[:] = {path!r}
import parking
def inner(case, more):
    case.ident, case.native = threading.get_ident(), parking.native_id()
    os.write({told}, parking.telling_of(case, sys._getframe(), **more)) and parking.hold.acquire()
class Sub:
    def method(self, case):
        inner(case, dict(outer={outer!r}))
def case(name):
    return parking.Case(type(name, (), {{}}))
threading.Thread(target=inner, args=(case("{name}_thread"), {{}})).start()
list(map(Sub().method, [case("{name}")]))
"""


def enter(name, number):
    """Runs the script there for good."""
    # fmt: off
    interpreters.run_string(number, SCRIPT.format(path=sys.path, told=told, name=name, outer=stack_of(sys._getframe())))
    # fmt: on


def sharing():
    """One that shares the GIL, where there is a choice."""
    if interpreters.__name__ == "_interpreters":
        return interpreters.create("legacy")
    try:
        return interpreters.create(isolated=False)
    except TypeError:
        return interpreters.create()


@case(group="interpreters", tells=2, needs=(NEEDS,))
def shared_interpreter():
    enter("shared_interpreter", sharing())


@case(group="interpreters", tells=2, needs=(NEEDS,), since=(3, 12))
def own_interpreter():
    enter("own_interpreter", interpreters.create())
