"""A stand-in for the lock of `parking`: who would park there, uses its CPU there, in turns, and tells where it is."""
import sys
import threading
from time import clock_gettime, CLOCK_THREAD_CPUTIME_ID

import telling


def counting(count):
    for number in range(count):
        yield number


def key(number):
    return -number


def leaf(number):
    number += 1
    return number


def burn(until):
    """Uses the CPU up to a time of the thread, in Python and in C, with and without frames of its own."""
    number = 0
    numbers = list(range(40))
    while clock_gettime(CLOCK_THREAD_CPUTIME_ID) < until:
        number += 1
        number = leaf(number)  # CALLS leaf
        number += number * number % 7
        sorted(numbers, key=key)  # CALLS key
        for value in counting(10):  # CALLS counting
            number ^= value
        sum(numbers)
        number &= 0xFFFF


class Turns:
    """Each thread that comes waits until all are there, uses the CPU when it is its turn, and stays."""

    def __init__(self):
        self.waiting = []
        self.told = []
        self.spent = {}
        self.come = threading.Semaphore(0)
        self.over = threading.Lock()
        self.over.acquire()
        self.seconds = 0

    def acquire(self):
        turn = threading.Lock()
        turn.acquire()
        name = telling.name_thread("c%d" % len(self.told))
        self.told.append(dict(thread=name, chain=telling.chain_of(sys._getframe(1)), tails="turn"))
        self.waiting.append(turn)
        self.come.release()
        turn.acquire()
        start = clock_gettime(CLOCK_THREAD_CPUTIME_ID)
        burn(start + self.seconds)  # BURNS
        self.spent[name] = clock_gettime(CLOCK_THREAD_CPUTIME_ID) - start
        (self.waiting.pop() if self.waiting else self.over).release()
        turn.acquire()

    def take(self, seconds):
        """All turns, of so many CPU seconds each."""
        self.seconds = seconds
        self.waiting.pop().release()
        self.over.acquire()


def spend(name, seconds):
    """Names the thread, tells where it is, and uses so many CPU seconds, which it tells too."""
    name = telling.name_thread(name)
    chain = telling.chain_of(sys._getframe(1))
    telling.say(thread=name, case=name, chain=chain, tails="spend")
    start = clock_gettime(CLOCK_THREAD_CPUTIME_ID)
    burn(start + seconds)  # BURNS
    spent = clock_gettime(CLOCK_THREAD_CPUTIME_ID) - start
    telling.say(burnt={name: spent})


def whole(code):
    return telling.place(code, telling.lines_of(code))


def at(code, mark):
    return telling.place(code, [telling.marked(code, mark)])


def burning(outer):
    """What stands below a function that burns, outermost first."""
    deeper = [[at(burn.__code__, "CALLS " + code.co_name), whole(code)] for code in WITHIN]
    return [[at(outer, "BURNS")] + tail for tail in [[whole(burn.__code__)]] + deeper]


def say_tails():
    """What may stand below the chains that are told. None is for anything: what is done beside burning is not told."""
    turn, outer = Turns.acquire.__code__, spend.__code__
    beside = [line for line in telling.lines_of(outer) if line != telling.marked(outer, "BURNS")]
    spending = burning(outer) + [[telling.place(outer, beside), None]]
    telling.say(through_c=[["burn", "key"]], direct=[["burn", "leaf"]])
    telling.say(tails=dict(turn=burning(turn) + [[whole(turn)]], spend=spending))


WITHIN = [leaf.__code__, key.__code__, counting.__code__]
