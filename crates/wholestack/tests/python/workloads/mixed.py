"""What programs do: C libraries called from Python, some of which call back."""
import functools
import hashlib
import json
import re

import working

try:
    import zlib
except ImportError:
    zlib = None
try:
    import numpy
except ImportError:
    numpy = None

RECORDS = [{"a": number, "b": str(number) * 3} for number in range(50)]
TEXT = json.dumps(RECORDS)
BYTES = TEXT.encode() * 8


class Unknown:
    pass


def default(value):
    return [1]


def dumping(size, taken):
    for _ in range(size):
        json.dumps(RECORDS)
        json.dumps([Unknown(), RECORDS], default=default)


def hook(pairs):
    return len(pairs)


def loading(size, taken):
    for _ in range(size):
        json.loads(TEXT)
        json.loads(TEXT, object_pairs_hook=hook)


def compressing(size, taken):
    for _ in range(size):
        zlib.compress(BYTES, 6)


def replacement(match):
    return match.group(1)


def matching(size, taken):
    for _ in range(size):
        re.findall(r'"a": (\d+)', TEXT)
        re.sub(r"(\d)\d*", replacement, TEXT)


def key(record):
    return record["b"]


def compare(left, right):
    return len(left["b"]) - len(right["b"])


def ordering(size, taken):
    for _ in range(size):
        sorted(RECORDS, key=key)
        sorted(RECORDS, key=functools.cmp_to_key(compare))


def hashing(size, taken):
    for _ in range(size):
        hashlib.sha256(BYTES).digest()
        if DERIVE:
            DERIVE("sha256", b"a", b"b", 20)


def multiplying(size, taken):
    for _ in range(size):
        numpy.dot(MATRIX, MATRIX)
        numpy.sort(MATRIX, axis=None)


# from 3.12 on hashlib has it of OpenSSL only, which not every interpreter is built with
DERIVE = getattr(hashlib, "pbkdf2_hmac", None)
MATRIX = numpy.arange(2500.0).reshape(50, 50) if numpy else None
BLOCKS = [dumping, loading, matching, ordering, hashing]
if zlib:
    BLOCKS.append(compressing)
if numpy:
    BLOCKS.append(multiplying)

if __name__ == "__main__":
    working.main(BLOCKS, 2)
