"""A program that soon ends: `short.py SECONDS`."""
import sys

import spinning
import telling


def main():
    if telling.GATED:
        telling.say_version()
        spinning.say_tails()
    work(float(sys.argv[1]))


def work(seconds):
    spinning.spend("short", seconds)


main()
