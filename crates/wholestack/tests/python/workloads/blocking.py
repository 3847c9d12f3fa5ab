"""System calls that use the CPU in the kernel, each on a line of its own."""
import os

import working
from telling import now

ZERO = os.open("/dev/zero", os.O_RDONLY)
RANDOM = os.open("/dev/urandom", os.O_RDONLY)


def reading(size):
    """Not the caller's line: that of the call."""
    data = os.read(ZERO, size)
    return len(data)


def calls(size, taken):
    # fmt: off
    t0 = now()
    os.read(ZERO, size * 64)  # BUSY 0
    t1 = now()
    os.pread(RANDOM, size, 0)  # BUSY 1
    t2 = now()
    for _ in range(size // 600): os.stat("/")  # BUSY 2
    t3 = now()
    reading(size * 64)  # BUSY 3
    t4 = now()
    # fmt: on
    for number, seconds in enumerate((t1 - t0, t2 - t1, t3 - t2, t4 - t3)):
        taken[number] = taken.get(number, 0) + seconds


if __name__ == "__main__":
    working.main([calls], 2)
