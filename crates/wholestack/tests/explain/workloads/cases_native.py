"""Code that is no Python between, below and beside the Python frames."""
import os
import select

from parking import case, go, hold


@case()
def selecting():
    reader, _ = os.pipe()
    select.select([reader], [], [])  # PARKS


@case()
def reading():
    reader, _ = os.pipe()
    with open(reader, "rb") as file:
        file.read()  # PARKS


@case(needs=("ctypes",))
def ctypes_call():
    import ctypes

    libc = ctypes.CDLL(None)
    libc.pause()  # PARKS


@case(needs=("ctypes",))
def ctypes_callback():
    """C that calls back: qsort."""
    import ctypes

    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def callback(left, right):
        hold.acquire()  # PARKS

    ctypes.CDLL(None).qsort((ctypes.c_int * 3)(3, 2, 1), 3, 4, compare(callback))


def foreign(case):
    """A thread that the interpreter did not make."""
    import ctypes

    routine = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    foreign.kept = routine(lambda _: case.run())
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "pthread_create"):
        libc = ctypes.CDLL("libpthread.so.0")
    libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, foreign.kept, None)


@case(needs=("ctypes",), start=foreign)
def foreign_thread():
    hold.acquire()  # PARKS


@case(needs=("sqlite3",))
def sqlite_callback():
    import sqlite3

    def function(value):
        hold.acquire()  # PARKS

    connection = sqlite3.connect(":memory:")
    connection.create_function("function", 1, function)
    connection.execute("select function(1)").fetchall()


@case(needs=("pyexpat",))
def expat_callback():
    from xml.parsers import expat

    class Handler:
        def start(self, name, attributes):
            hold.acquire()  # PARKS

    parser = expat.ParserCreate()
    parser.StartElementHandler = Handler().start
    parser.Parse("<a><b/></a>", True)


@case(group="gil", needs=("ctypes",))
def gil_held():
    """Blocks with the GIL, until standard input is closed."""
    import ctypes

    libc, byte = ctypes.PyDLL(None), ctypes.create_string_buffer(1)
    go.acquire() and libc.read(0, byte, 1)  # PARKS
    os._exit(0)
