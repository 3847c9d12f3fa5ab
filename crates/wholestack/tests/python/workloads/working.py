"""Threads that do blocks of work, drawn by lot, and know how much CPU time each kind took.

    WORKLOAD SECONDS [THREADS]

A block is a function of the size of its work, and of a dictionary, to which it adds how long its busy lines took: those
that end in a comment with the same number.
"""
import random
import sys
import threading

import calls
import telling
from telling import now

# CPU seconds of a block
BLOCK = 0.0004


class Worker:
    def __init__(self, number, blocks, seconds):
        self.name = "w%d" % number
        self.blocks = blocks
        self.seconds = seconds
        self.lot = random.Random(number).random
        self.spent = [0.0 for _ in blocks]
        self.lines = [{} for _ in blocks]
        self.cpu = 0.0
        self.go = threading.Lock()
        self.over = threading.Lock()
        self.go.acquire()
        self.over.acquire()
        self.thread = threading.Thread(target=self.named, daemon=True)

    def named(self):
        telling.name_thread(self.name)
        self.run()

    def run(self):
        """How long blocks are, and which comes when, is in step with no rate of sampling."""
        blocks, lot, spent, lines = self.blocks, self.lot, self.spent, self.lines
        count = len(blocks)
        self.go.acquire()
        begun = start = now()
        while start < begun + self.seconds:
            chosen = int(lot() * count)
            function, size = blocks[chosen]
            size = int(size * (0.5 + lot())) + 1
            start = now()
            function(size, lines[chosen])
            spent[chosen] += now() - start
        self.cpu = now() - begun
        self.over.release()
        # where it was all the time
        self.go.acquire()


def calibrated(block):
    """With the size at which it takes about as long as the others."""
    size = 4
    while size < 1 << 24:
        size += size // 2
        # what is done for the first time takes longer: memory of that size is got
        if min(timed(block, size) for _ in range(3)) >= BLOCK:
            break
    return block, size


def timed(block, size):
    start = now()
    block(size, {})
    return now() - start


def watched(blocks):
    """What is called, from where: each block done a few times in a thread like those that are recorded."""
    with calls.Calls() as watching:
        for block in blocks:
            worker = Worker(0, [block], 0.01)
            worker.go.release()
            worker.thread.start()
            worker.over.acquire()
            worker.go.release()
            worker.thread.join()
    return watching


def main(blocks, threads=4):
    """Does blocks until all threads have used their time."""
    seconds, threads = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else threads
    for block in blocks:
        # the first time is not as others are: modules are imported, patterns compiled
        block(2, {})
    blocks = [calibrated(block) for block in blocks]
    telling.say_version()
    watched(blocks).say()
    workers = [Worker(number, blocks, seconds) for number in range(threads)]
    for worker in workers:
        worker.thread.start()
    telling.say(thread=telling.name_thread("main"), case="main", chain=telling.chain_of(sys._getframe(1)))
    telling.wait_for_go()
    for worker in workers:
        worker.go.release()
    for worker in workers:
        worker.over.acquire()
    tell(blocks, workers)


def tell(blocks, workers):
    """How much CPU time was used: by threads; by blocks; by lines of blocks."""
    shares = []
    for number, (block, _) in enumerate(blocks):
        code = block.__code__
        taken = {}
        for worker in workers:
            for mark, seconds in worker.lines[number].items():
                taken[mark] = taken.get(mark, 0) + seconds
        lines = [dict(lines=marked(code, mark), seconds=seconds) for mark, seconds in sorted(taken.items())]
        seconds = sum(worker.spent[number] for worker in workers)
        shares.append(dict(block=telling.place(code, []), seconds=seconds, lines=lines))
    telling.end(cpu=dict((telling.PREFIX + worker.name, worker.cpu) for worker in workers), shares=shares)


def marked(code, mark):
    with open(code.co_filename, encoding="utf-8") as source:
        lines = source.read().splitlines()
    return [line for line in telling.lines_of(code) if line and lines[line - 1].endswith("# BUSY %d" % mark)]
