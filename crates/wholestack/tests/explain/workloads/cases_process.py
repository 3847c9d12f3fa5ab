"""What happens to the process as a whole: signals and forks."""
import os
import signal
import sys
import threading
import warnings

from parking import CASES, case, hold, native_id, telling_of, told


def in_main(case):
    """Has the main thread interrupted, once it is parked, and run the case in its handler."""
    case.ident, case.native = threading.get_ident(), native_id()
    signal.signal(signal.SIGALRM, lambda number, frame: case.function())
    signal.setitimer(signal.ITIMER_REAL, 0.05)


@case(group="signal", start=in_main, mark="# PARKS in the handler")
def handler():
    os.read(0, 1)  # PARKS in the handler
    os._exit(0)


@case(group="fork", tells=2)
def forked():
    """Both processes tell of their thread; in the child it is the only one."""
    warnings.simplefilter("ignore")
    this = CASES["forked"]
    child = os.fork()
    this.native = native_id()
    os.write(told, telling_of(this, sys._getframe())) and child and hold.acquire() or os.read(0, 1)  # PARKS
    os._exit(0)
