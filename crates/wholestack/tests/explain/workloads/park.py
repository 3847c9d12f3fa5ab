"""Parks threads in many ways and tells where each is.

    park.py [GROUP or CASE]...

Prints a line of JSON of the interpreter, one of each thread with its stack as the interpreter itself has it, and READY.
Stays as it is until standard input is closed. Without arguments the group is `parked`; `--list` lists all.
"""
import os
import sys
import threading

import parking
from parking import go, hold, say

MODULES = "calls asyncio busy interpreters lines names native process".split()


def interpreter(left_out):
    """What this interpreter says of itself."""
    import sysconfig

    return dict(
        version="%d.%d.%d" % sys.version_info[:3],
        release=sys.version_info[3],
        implementation=sys.implementation.name,
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        debug=hasattr(sys, "gettotalrefcount"),
        executable=sys.executable,
        prefix=sys.prefix,
        left_out=left_out,
    )


def load(words):
    """Imports the modules of cases, until there is a case for every word; gives the names of those for which this
    interpreter lacks a module."""
    lacking = []
    for module in ["cases_" + name for name in MODULES]:
        if words and all(word in parking.CASES for word in words):
            break
        try:
            __import__(module)
        except ImportError:
            lacking.append(module)
    return lacking


def chosen(words):
    """The cases of these names and groups."""
    found = []
    for word in words or ["parked"]:
        of_word = [case for case in parking.CASES.values() if word in (case.name, case.group)]
        if not of_word:
            raise SystemExit("no case and no group is called %s" % word)
        found += of_word
    return found


def reporter(cases, itself):
    """Parks like all others, once it has told of them. What READY comes after stands in one line."""
    itself.ident, itself.native = threading.get_ident(), parking.native_id()
    # fmt: off
    parking.report(cases, itself) or (os.write(1, b"READY\n") and go.release()) or hold.acquire()  # PARKS
    # fmt: on


def main():
    words = [word for word in sys.argv[1:] if word != "--list"]
    lacking = load(words)
    if "--list" in sys.argv:
        print("\n".join("%s %s" % (case.group, case.name) for case in parking.CASES.values() if case.possible))
        return
    cases = chosen(words)
    say(interpreter=interpreter(lacking + [case.name for case in cases if not case.possible]))
    cases = [case for case in cases if case.possible]
    threading.stack_size(8 << 20)
    for case in cases:
        if not case.tells:
            case.start(case)
    this, itself = parking.Case(main), parking.Case(reporter)
    this.ident, this.native = threading.get_ident(), parking.native_id()
    threading.Thread(target=reporter, args=(cases + [this], itself), name="reporter", daemon=True).start()
    os.read(0, 1)  # PARKS
    os._exit(0)


if __name__ == "__main__":
    main()
