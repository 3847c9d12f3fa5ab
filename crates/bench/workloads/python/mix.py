"""Work that keeps a CPU busy: calls, objects, strings, sorting, C functions. mix.py ROUNDS

A round takes about a millisecond and is the same each time.
"""
import json
import sys
import zlib

from gate import gate_run


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def length(self):
        return (self.x * self.x + self.y * self.y) ** 0.5


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def key(point):
    return point.length()


def order(count):
    points = [Point(i * 7919 % 1009, i * 104729 % 1013) for i in range(count)]
    points.sort(key=key)
    return points[0].x


def words(count):
    text = " ".join("word%d" % (i % 97) for i in range(count))
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return len(counts)


def store(count):
    text = json.dumps([{"a": i, "b": [i, i + 1]} for i in range(count)])
    return len(zlib.compress(text.encode(), 6)) + len(json.loads(text))


def produce(count):
    for i in range(count):
        yield i * 3 % 7


def consume(count):
    return sum(value for value in produce(count))


def work():
    for _ in range(ROUNDS):
        fibonacci(13)
        order(300)
        words(600)
        store(100)
        consume(1000)


ROUNDS = int(sys.argv[1])
gate_run(work)
