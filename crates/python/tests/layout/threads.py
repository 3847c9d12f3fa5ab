# Parks threads in all kinds of frames and prints, a line of JSON each, what their stacks are: names, innermost first.
import functools
import json
import os
import sys
import threading
import time

lock = threading.Lock()
told = []


def tell(what):
    with lock:
        os.write(1, (json.dumps(what) + "\n").encode())


def park(what, wait=int):
    names = []
    frame = sys._getframe()
    while frame is not None:
        names.append(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
        frame = frame.f_back
    native = threading.get_native_id() if hasattr(threading, "get_native_id") else None
    tell({"thread": what, "ident": threading.get_ident(), "native": native, "names": names})
    told.append(what)
    wait()
    time.sleep(1e6)


def deep(depth):
    if depth:
        return deep(depth - 1)
    ready()


def plain():
    park("plain")


class Nested:
    def numbers(self):
        yield 3
        yield from self.more()

    def more(self):
        yield functools.reduce(self.add, [1, 2, 3])

    def add(self, left, right):
        sorted([right], key=lambda value: list(map(self.last, [value])))
        return left

    def last(self, value):
        park("nested")


def nested():
    list(Nested().numbers())


def coroutines():
    import asyncio

    async def inner():
        park("coroutine")

    async def outer():
        await inner()

    asyncio.new_event_loop().run_until_complete(outer())


def foreign():
    names = {"park": park}
    exec("def gr\u00f6\u00dfe(): park('foreign')", names)
    exec("def \u540d\u524d(): gr\u00f6\u00dfe()", names)
    exec("def \U00020000(): \u540d\u524d()", names)
    names["\U00020000"]()


def module():
    exec(compile("park('module')", "made.py", "exec"), {"park": park})


def interpreter():
    reader, writer = os.pipe()
    text = "import os, time; os.write(%d, b'x'); time.sleep(1e6)" % writer

    def run():
        try:
            import _testcapi

            return _testcapi.run_in_subinterp(text)
        except ImportError:
            pass
        try:
            import _interpreters as interpreters
        except ImportError:
            try:
                import _xxsubinterpreters as interpreters
            except ImportError:
                return os.write(writer, b"-")
        interpreters.run_string(interpreters.create(), text)

    threading.Thread(target=run, daemon=True).start()
    return os.read(reader, 1) == b"x"


def ready():
    try:
        # waits for a signal, and keeps the GIL
        import ctypes

        wait = ctypes.PyDLL(None).pause
    except (ImportError, AttributeError, OSError):
        wait = None
    # their numbers must differ from flags
    more = interpreter() + interpreter()
    for target in (plain, nested, coroutines, foreign, module):
        threading.Thread(target=target, daemon=True).start()
    while len(told) < 5:
        time.sleep(0.01)
    tell({"version": sys.hexversion, "interpreters": 1 + more, "holds": wait is not None})
    park("main", wait or int)


sys.setrecursionlimit(5000)
deep(900)
