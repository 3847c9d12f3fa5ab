"""A sampler from within, to whom the interpreter itself says where its threads are: with SAMPLES=FILE in the environment it
writes what `wholestack record --lines -o FILE.folded` would. What judges recordings must find all of that right.
"""
import os
import sys
import threading
import time

FILE = os.environ.get("SAMPLES")
# By what threads call themselves.
NAMES = {}
STACKS = {}
over = threading.Event()


def escaped(text):
    """Just enough of it."""
    text = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return "".join("\\u{%x}" % ord(char) if char in ";\\" or not char.isprintable() else char for char in text)


def label(code, line):
    place = code.co_filename.rsplit("/")[-1] + ("" if line is None else ":%d" % line)
    return escaped("%s (%s)" % (getattr(code, "co_qualname", code.co_name), place))


def places(frame):
    """Code, line and place of each frame, outermost first."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno, frame.f_lasti))
        frame = frame.f_back
    return found[::-1]


def sample():
    while not over.wait(0.0007):
        # others may run meanwhile; then what is seen is of two moments
        sys.setswitchinterval(1000)
        for ident, frame in sys._current_frames().items():
            name, first, again = NAMES.get(ident), places(frame), places(sys._current_frames().get(ident))
            if name is not None and first == again:
                stack = ";".join([name] + [label(code, line) for code, line, _ in first])
                STACKS[stack] = STACKS.get(stack, 0) + 1
        del frame
        sys.setswitchinterval(0.0005)


def start():
    if FILE:
        global thread
        thread = threading.Thread(target=sample)
        thread.start()


def stop():
    if FILE:
        over.set()
        thread.join()
        with open(FILE, "w", encoding="utf-8") as out:
            out.writelines("process;%s %d\n" % stack for stack in sorted(STACKS.items()))
