"""A thread that never runs Python, beside one that does: `strangers.py SECONDS LIBRARY`."""
import ctypes
import sys
import threading

import spinning
import telling


def beside(seconds):
    spinning.spend("python", seconds)


def main():
    seconds, library = float(sys.argv[1]), ctypes.CDLL(sys.argv[2])
    telling.say_version()
    spinning.say_tails()
    telling.wait_for_go()
    library.start_stranger(ctypes.c_double(seconds))
    thread = threading.Thread(target=beside, args=(seconds,))
    thread.start()
    thread.join()
    library.join_stranger.restype = ctypes.c_double
    telling.end(cpu={"stranger": library.join_stranger()})


main()
