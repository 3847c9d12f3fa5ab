"""One thread that uses its CPU; `lone.py NAME SECONDS`."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import spinning
import telling


def main():
    name, seconds = sys.argv[1], float(sys.argv[2])
    telling.say_version()
    spinning.say_tails()
    work(name, seconds)
    telling.end(cpu={})


def work(name, seconds):
    spinning.spend(name, seconds)


if __name__ == "__main__":
    main()
