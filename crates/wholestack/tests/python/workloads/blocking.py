"""System calls that use the CPU in the kernel, each on a line of its own.

One thread: where threads hand the interpreter's lock to each other, they sleep and wake all the time, and what the kernel
does for that with interrupts off counts as the thread's CPU time, but the timer of the sampler only fires when another
runs. No devices: below another root directory there may be none.
"""
import os
import tempfile

import working
from telling import now

ZEROS = tempfile.TemporaryFile()
ZEROS.write(bytes(8 << 20))
ZEROS.flush()
FILE = ZEROS.fileno()


def reading(size):
    """Not the caller's line: that of the call."""
    data = os.read(FILE, size)
    return len(data)


def calls(size, taken):
    # fmt: off
    os.lseek(FILE, 0, os.SEEK_SET)
    t = now()
    t0 = now()
    os.read(FILE, size * 64)  # BUSY 0
    t1 = now()
    os.pread(FILE, size * 64, 0)  # BUSY 1
    t2 = now()
    for _ in range(size // 200): os.stat("/")  # BUSY 2
    t3 = now()
    os.lseek(FILE, 0, os.SEEK_SET)
    t4 = now()
    reading(size * 64)  # BUSY 3
    t5 = now()
    # fmt: on
    # what the clock itself takes is not the lines'
    clock = t0 - t
    for number, seconds in enumerate((t1 - t0, t2 - t1, t3 - t2, t5 - t4)):
        taken[number] = taken.get(number, 0) + seconds - clock


if __name__ == "__main__":
    working.main([calls], 1)
