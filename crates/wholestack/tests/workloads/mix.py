"""Recursion, JSON, compression, regular expressions and sorting, so many rounds as the argument says."""
import json
import re
import sys
import zlib


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


total = 0
for number in range(int(sys.argv[1])):
    total += fibonacci(21)
    text = json.dumps([{"a": k, "b": str(k) * 3} for k in range(3000)])
    total += len(json.loads(text))
    total += len(zlib.compress(text.encode(), 6))
    total += len(re.findall(r'"a": (\d+)', text))
    total += len(sorted(text.split(","), key=len))
print(total)
