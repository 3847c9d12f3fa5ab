"""Becomes another interpreter: `execs.py SECONDS PROGRAM...`."""
import os
import sys

import spinning
import telling


def main():
    seconds, programs = sys.argv[1], sys.argv[2:]
    telling.say_version()
    spinning.say_tails()
    spinning.spend("exec%d" % len(programs), float(seconds))
    if programs:
        os.execv(programs[0], [programs[0], __file__, seconds] + programs[1:])
    telling.end(cpu={})


main()
