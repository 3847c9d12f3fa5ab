"""What the cases share: how they are registered, started, and told of.

A case is a function that parks its thread for good: blocked in a call, on a line that says so in a comment. What it is
told of is taken from inside, of the interpreter's own frame objects.
"""
import json
import linecache
import os
import sys
import threading
import time
import traceback

MARK = "# PARKS"

# Nobody releases it.
hold = threading.Lock()
hold.acquire()

# Released once everything is told of; whoever then takes the GIL for good may.
go = threading.Lock()
go.acquire()

CASES = {}

# Sources of code that is in no file, by the name that it was compiled with.
SOURCES = {}

# Threads that tell of themselves, and those of other interpreters, write a line each here.
telling, told = os.pipe()


class Case:
    """A way to park."""

    def __init__(self, function, group="", mark=MARK, start=None, tells=0, possible=True):
        self.function = function
        self.name = function.__name__
        self.group = group
        self.mark = mark
        self.start = start
        self.tells = tells
        self.possible = possible
        self.ident = None
        self.native = None

    def run(self):
        """In its thread."""
        try:
            self.native = native_id()
            self.ident = threading.get_ident()
            self.function()
            raise RuntimeError("it did not park")
        except BaseException:
            sys.stderr.write("case %s\n" % self.name)
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def is_parked(self, frames):
        frame = frames.get(self.ident)
        return frame is not None and self.mark in line_of(frame) and is_blocked(self)

    def told(self, stack):
        return dict(case=self.name, pid=os.getpid(), ident=self.ident, native=self.native, traceback=stack)


def thread(case):
    threading.Thread(target=case.run, name=case.name, daemon=True).start()


def case(group="parked", mark=MARK, start=thread, needs=(), since=(3, 6), until=(4,), tells=0):
    """Registers a case; one that lacks a module or the right version is left out. `tells` is how often it tells of
    itself; then nobody looks at its frames from outside."""

    def register(function):
        possible = since <= sys.version_info < until and all(has(module) for module in needs)
        CASES[function.__name__] = Case(function, group, mark, start, tells, possible)
        return function

    return register


def has(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def call_for_native_id():
    """What gives the kernel's id of a thread, or None if it cannot be had."""
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id
    if not has("ctypes"):
        return lambda: None
    import ctypes

    number = {"x86_64": 186, "aarch64": 178}[os.uname().machine]
    return lambda: ctypes.CDLL(None).syscall(number)


# once, since old versions do not bear a failing import in two threads
native_id = call_for_native_id()


def stack_of(frame):
    """Of each frame, innermost first: name, file, line, first line of the function."""
    stack = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        stack.append([text(name), text(code.co_filename), frame.f_lineno, code.co_firstlineno])
        frame = frame.f_back
    return stack


def text(string):
    """What is no text (bytes of a path that are no UTF-8) as U+FFFD."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in string)


def line_of(frame):
    """The source of the line where a frame is."""
    name, line = frame.f_code.co_filename, frame.f_lineno
    if name in SOURCES:
        lines = SOURCES[name].splitlines()
        return lines[line - 1] if line and line <= len(lines) else ""
    return linecache.getline(name, line or 0)


def is_blocked(case):
    """Whether a thread has left its CPU, where this can be told."""
    if case.group == "busy" or case.native is None:
        return True
    try:
        with open("/proc/self/task/%d/stat" % case.native) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "S"
    except OSError:
        return True


def run(source, name, names=None):
    """Runs source text that is in no file."""
    SOURCES[name] = source
    names = dict(names or {}, hold=hold, __name__="source")
    exec(compile(source, name, "exec"), names)
    return names


def say(**told):
    """A line of JSON; on no account half of one."""
    line = json.dumps(told).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


def telling_of(case, frame, **more):
    """What a thread writes to `told`, in the very line in which it parks."""
    return json.dumps(dict(case.told(stack_of(frame)), **more)).encode() + b"\n"


def report(cases, reporter):
    """Waits until all are parked, and tells of them and of the caller."""
    watched = [case for case in cases if not case.tells]
    while True:
        frames = sys._current_frames()
        if all(case.is_parked(frames) for case in watched):
            break
        del frames
        time.sleep(0.005)
    for case in watched:
        say(**case.told(stack_of(frames[case.ident])))
    del frames
    # only now, since from 3.12 on nobody may look at frames that an interpreter with a GIL of its own makes
    for case in cases:
        if case.tells:
            case.start(case)
    with open(telling, "rb", closefd=False) as lines:
        for _ in range(sum(case.tells for case in cases)):
            say(**json.loads(lines.readline().decode()))
    say(**reporter.told(stack_of(sys._getframe(1))))
