"""What the workloads share: a thread's name and CPU time, the gate, and how they tell where they are.

A workload writes lines of JSON and READY, waits for a line on standard input, works, writes a line of JSON that has
`cpu`, and stays until standard input is closed. With GATE=0 in the environment it does not wait, neither before nor
after.

A frame is told as [name, file, lines, first line]: in one of these lines it is, 0 for none.
"""
import dis
import functools
import json
import os
import sys
import threading
import time

import sampling

try:
    import ctypes
except ImportError:
    ctypes = None

# CPU seconds of the calling thread; C, so it makes no frame
now = functools.partial(time.clock_gettime, time.CLOCK_THREAD_CPUTIME_ID)

GATED = os.environ.get("GATE") != "0"

# Before the names of all threads, so that several processes can be told apart.
PREFIX = os.environ.get("PREFIX", "")


def name_thread(name):
    """Gives the calling thread a name by which the kernel knows it."""
    name = PREFIX + name
    try:
        with open("/proc/thread-self/comm", "w") as comm:
            comm.write(name)
    except OSError:
        # below another root directory there is no /proc
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    sampling.NAMES[threading.get_ident()] = name
    return name


def text(string):
    """What is no text (bytes of a path that are no UTF-8) as U+FFFD."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in string)


def name_of(code):
    return text(getattr(code, "co_qualname", code.co_name))


def lines_of(code):
    """All lines of a function, also that of `def`, where it is before it has begun; 0 if some of its code has none."""
    lines = set(line or 0 for _, line in dis.findlinestarts(code))
    if hasattr(code, "co_lines"):
        lines |= set(line or 0 for start, end, line in code.co_lines() if start != end)
    return sorted(lines | set([code.co_firstlineno]))


def place(code, lines):
    return [name_of(code), text(code.co_filename), lines, code.co_firstlineno]


def chain_of(frame):
    """Outermost first. Nobody runs meanwhile, so each has one line, or none."""
    chain = []
    while frame is not None:
        chain.append(place(frame.f_code, [frame.f_lineno or 0]))
        frame = frame.f_back
    return chain[::-1]


def marked(code, mark):
    """The line of a function that has this comment."""
    with open(code.co_filename, encoding="utf-8") as source:
        lines = source.read().splitlines()
    return next(line for line in lines_of(code) if line and lines[line - 1].endswith("# " + mark))


def say(**told):
    """A line of JSON; on no account half of one."""
    write(json.dumps(told) + "\n")


def write(string):
    rest = string.encode()
    while rest:
        rest = rest[os.write(1, rest) :]


def say_version():
    say(version="%d.%d.%d" % sys.version_info[:3])


def wait_for_go():
    """Then it warms up, so that who records it knows the interpreter when the work begins."""
    write("READY\n")
    if GATED:
        os.read(0, 1)
    until = now() + float(os.environ.get("WARM_UP", "0.3"))
    while now() < until:
        pass
    sampling.start()


def end(**told):
    """Tells of the work and goes, without the interpreter's own end."""
    sampling.stop()
    say(**told)
    if GATED:
        while os.read(0, 1):
            pass
    os._exit(0)
