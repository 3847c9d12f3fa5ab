"""What the Python workloads share: the gate, the clocks, and the line at the end; as bench.h for those in C.

1. the program prints "READY pid" and waits for a line on standard input;
2. it works;
3. it prints one line of JSON: wall and CPU seconds of the work;
4. it stays until standard input is closed.

A profiler that samples waiting threads, too, sees `gate_wait` in them. It ends after ten minutes in any case.
"""
import os
import signal
import sys
import time


def gate_wait():
    return sys.stdin.readline()


def gate_run(work):
    """Lets `work` run once, between the gates."""
    signal.alarm(600)
    print("READY", os.getpid())
    sys.stdout.flush()
    if not gate_wait():
        sys.exit(3)
    wall, cpu = time.monotonic(), time.process_time()
    work()
    cpu, over = time.process_time() - cpu, time.monotonic() - wall
    print('{"begun":%.6f,"wall":%.6f,"cpu":%.6f}' % (wall, over, cpu))
    sys.stdout.flush()
    while gate_wait():
        pass
