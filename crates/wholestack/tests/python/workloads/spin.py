"""Runs the cases of `park.py` with threads that use their CPU where they would park.

    spin.py SECONDS DIRECTORY [GROUP or CASE]...

DIRECTORY has `parking.py` and the cases. Each thread uses SECONDS of CPU, one after the other, in a stack that stays as
it is but for the functions of `spinning`.
"""
import os
import sys
import threading

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), sys.argv[2]]

import parking
import spinning
import telling

# They block in the system, and have no lock to spin at instead.
BLOCKING = "sleeper event asyncio_idle selecting reading ctypes_call".split()

MODULES = "calls asyncio lines names native spinning".split()


def load(words):
    """Imports the modules of cases, until there is a case for every word."""
    lacking = []
    for module in ["cases_" + name for name in MODULES]:
        if words and all(word in parking.CASES for word in words):
            break
        try:
            __import__(module)
        except ImportError as error:
            lacking.append("%s (%s)" % (module, error))
    return lacking


def main():
    seconds, words = float(sys.argv[1]), sys.argv[3:]
    turns = parking.hold = spinning.Turns()
    lacking = load(words)
    cases = [
        case
        for case in parking.CASES.values()
        if case.possible and case.name not in BLOCKING and (case.name in words or not words and case.group == "parked")
    ]
    threading.stack_size(8 << 20)
    for case in cases:
        # one after the other, so that the lists are in step
        case.start(case)
        turns.come.acquire()
        turns.told[-1]["case"] = case.name
    telling.say_version()
    spinning.say_tails()
    for told in turns.told:
        telling.say(**told)
    whole = telling.place(main.__code__, telling.lines_of(main.__code__))
    # what it calls once the work is over is not told
    telling.say(thread=telling.name_thread("main"), case="main", chain=telling.chain_of(sys._getframe(1)) + [whole])
    telling.wait_for_go()
    turns.take(seconds)
    telling.end(cpu=turns.spent, lacking=lacking)


if __name__ == "__main__":
    main()
