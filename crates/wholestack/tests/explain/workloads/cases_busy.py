"""Threads that use their CPU: in C with the GIL, in C without it, and in Python. Their line stays what it is."""
import re

from parking import case


@case(group="busy", mark="# STAYS")
def matching():
    pattern, text = re.compile("(a+)+b"), "a" * 18
    # fmt: off
    while not pattern.match(text): pass  # STAYS
    # fmt: on


@case(group="busy", mark="# STAYS")
def sorting():
    numbers = list(range(10 ** 5))
    # fmt: off
    while sorted(numbers): pass  # STAYS
    # fmt: on


@case(group="busy", mark="# STAYS", needs=("zlib",))
def compressing():
    import zlib

    data = bytes(range(256)) * 4096
    # fmt: off
    while zlib.compress(data): pass  # STAYS
    # fmt: on


@case(group="busy", mark="# STAYS")
def hashing():
    import hashlib

    data = bytes(10 ** 7)
    # fmt: off
    while hashlib.sha256(data): pass  # STAYS
    # fmt: on


@case(group="busy", mark="# STAYS")
def looping():
    number = 0
    # fmt: off
    while True: number += 1  # STAYS
    # fmt: on
