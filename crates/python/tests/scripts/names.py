"""Makes strings, bytes, code objects and frames of all kinds, says where they lie and what they are, and waits.

A line of JSON for each. Strings are lists of code points, of which the first are given.
"""
import array
import dis
import importlib
import json
import os
import sys
import threading
import types
import warnings

GIVEN = 5000
keep = []
warnings.simplefilter('ignore')


def say(**what):
    sys.stdout.write(json.dumps(what) + '\n')


def points(text):
    return [ord(character) for character in text[:GIVEN]]


def say_str(text, known=None):
    keep.append(text)
    known = text if known is None else known
    say(kind='str', id=id(text), points=points(known), length=len(known))


def say_bytes(value):
    keep.append(value)
    say(kind='bytes', id=id(value), bytes=list(value[:GIVEN]), length=len(value))


def lines_of(code):
    if hasattr(code, 'co_lines'):
        return [[end, line] for begin, end, line in code.co_lines() if begin < end]
    starts = list(dis.findlinestarts(code))
    ends = [begin for begin, _ in starts[1:]] + [len(code.co_code)]
    return [[end, line] for end, (_, line) in zip(ends, starts)]


def say_code(code):
    keep.append(code)
    say(kind='code', id=id(code), name=points(getattr(code, 'co_qualname', code.co_name)), path=points(code.co_filename),
        first=code.co_firstlineno, flags=code.co_flags, arguments=code.co_argcount,
        positional=getattr(code, 'co_posonlyargcount', 0), keyword=code.co_kwonlyargcount, size=len(code.co_code),
        lines=lines_of(code))


def say_codes(root):
    say_code(root)
    for constant in root.co_consts:
        if isinstance(constant, types.CodeType):
            say_codes(constant)


def say_frame(frame):
    keep.append(frame)
    say(kind='frame', id=id(frame), code=id(frame.f_code), line=frame.f_lineno, lasti=frame.f_lasti)


class Path(str):
    pass


class Mixin:
    pass


class MorePath(Mixin, Path):
    pass


class Data(bytes):
    pass


def strings():
    for text in ['', 'a', 'plain_name', '\x7f', '\x80', 'caf\xe9', '\xff' * 300, '\u0100', '\u95a2\u6570', '\uffff', 'a\u95a2' * 9,
                 '\U00010000', '\U00020000name', '\U0010ffff', '\ud800', 'a\udcffb', '\ud83d\ude00', '\ud83d\U0001f600',
                 'nul\0inside', 'line\nbreak', 'x' * 4095, 'x' * 4096, 'x' * 4097, '\xe9' * 4097, '\u95a2' * 5000,
                 '\U00020000' * 5000, 'long' * 1000000]:
        say_str(text)
        say_str(''.join(list(text)))
        say_str(Path(text))
        say_str(MorePath(text))
    say_str(sys.intern('interned for ever and a day'))


def legacy_strings():
    try:
        import ctypes
        make, contents = ctypes.pythonapi.PyUnicode_FromUnicode, ctypes.pythonapi.PyUnicode_AsUnicode
    except (ImportError, AttributeError):
        return
    make.argtypes, make.restype = [ctypes.c_void_p, ctypes.c_ssize_t], ctypes.py_object
    contents.argtypes, contents.restype = [ctypes.py_object], ctypes.c_void_p
    for known in ['legacy', 'caf\xe9!', '\u95a2\u6570', '\U00020000x', 'x' * 5000]:
        for look_at in [False, True]:
            text = make(None, len(known))
            characters = array.array('I', points(known) + [0])
            ctypes.memmove(contents(text), characters.buffer_info()[0], len(characters) * 4)
            if look_at:
                text.isidentifier()
            say_str(text, known)


SOURCE = '''
def caf\xe9(a, b=1, *args, c, d=2, **others):
    return [a for a in args]
class \u95a2\u6570:
    def \U00020000(self):
        def inner():
            return lambda: (yield self)
        return inner
    async def later(self):
        async with self as me:
            await me
        return {a: b async for a, b in me}

    class Nested:
        x = 1
        def method(self): return __class__
def generator():
    yield 1

    try:
        for i in range(3):
            yield (
                i
            )
    finally:
        del i
''' + 'def ' + 'n' * 5000 + '(): pass\n'


def renamed(code, name):
    if hasattr(code, 'replace'):
        return code.replace(co_name=name)
    return types.CodeType(code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code,
                          code.co_consts, code.co_names, code.co_varnames, code.co_filename, name, code.co_firstlineno,
                          code.co_lnotab, code.co_freevars, code.co_cellvars)


def codes():
    for path in ['<string>', '/tmp/caf\xe9/\u95a2\u6570.py', '/tmp/\U00020000.py', os.fsdecode(b'/tmp/\xff.py'), Path('/tmp/sub.py'),
                 '/' + 'long/' * 900]:
        say_codes(compile(SOURCE, path, 'exec'))
    if sys.version_info >= (3, 8):
        say_codes(compile('def f(a, b, /, c, *, d): pass', 'positional.py', 'exec'))
    say_codes(compile('\n' * 70000 + 'x = 1\n' + '\n' * 300 + 'y = (lambda: 2)\n', 'far.py', 'exec'))
    say_codes(compile('\n'.join('x%d = [%d, y]' % (i, i) for i in range(20000)), 'wide.py', 'exec'))
    for name in ['\udc80x', '\u95a2', 'x' * 4097]:
        say_code(renamed(codes.__code__, name))
    for function in [os.path.join, threading.Thread.start, json.dumps, importlib._bootstrap._find_and_load]:
        say_code(function.__code__)


def parked(lock):
    for _ in range(2):
        lock.acquire()


def frames():
    namespace = {}
    exec(compile(SOURCE, 'generators.py', 'exec'), namespace)
    for steps in range(4):
        generator = namespace['generator']()
        for _ in range(steps):
            next(generator)
        keep.append(generator)
        say_code(generator.gi_frame.f_code)
        say_frame(generator.gi_frame)
    lock, is_there = threading.Lock(), threading.Event()
    lock.acquire()

    def outer():
        is_there.set()
        parked(
            lock
        )
    thread = threading.Thread(target=outer, daemon=True)
    thread.start()
    is_there.wait()
    frame = None
    while frame is None or frame.f_code is not parked.__code__:
        frame = sys._current_frames()[thread.ident]
    threading.Event().wait(0.1)
    while frame is not None:
        say_code(frame.f_code)
        say_frame(frame)
        frame = frame.f_back


say(kind='types', str=id(str), bytes=id(bytes), code=id(types.CodeType))
strings()
legacy_strings()
for value in [b'', b'x', b'\0\xff', bytes(5000), Data(b'sub'), b'x' * 2000000]:
    say_bytes(value)
codes()
frames()
for other in [1, 1.5, None, [], {}, (), object(), codes, sys, int, Path, bytearray(b'x'), keep]:
    say(kind='other', id=id(other))
    keep.append(other)
say(kind='end')
sys.stdout.flush()
sys.stdin.read()
