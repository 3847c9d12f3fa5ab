"""Compiles whole packages of the standard library, says of each code object where it lies and what it is, and waits.

A line of JSON for each.
"""
import dis
import importlib.machinery
import json
import os
import sys
import sysconfig
import types
import warnings

sys.dont_write_bytecode = True
warnings.simplefilter('ignore')
PACKAGES = ['asyncio', 'email', 'encodings', 'json', 'unittest']
keep = []


def say(**what):
    sys.stdout.write(json.dumps(what) + '\n')


def lines_of(code):
    if hasattr(code, 'co_lines'):
        return [[end, line] for begin, end, line in code.co_lines() if begin < end]
    starts = list(dis.findlinestarts(code))
    ends = [begin for begin, _ in starts[1:]] + [len(code.co_code)]
    return [[end, line] for end, (_, line) in zip(ends, starts)]


def say_codes(code):
    keep.append(code)
    say(id=id(code), name=getattr(code, 'co_qualname', code.co_name), path=code.co_filename, first=code.co_firstlineno,
        size=len(code.co_code), lines=lines_of(code))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            say_codes(constant)


def source_files(package):
    for directory, directories, files in os.walk(os.path.join(sysconfig.get_path('stdlib'), package)):
        directories[:] = [name for name in directories if name not in ('__pycache__', 'test')]
        for name in files:
            if name.endswith('.py'):
                yield os.path.join(directory, name)


say(str=id(str), bytes=id(bytes), code=id(types.CodeType), frame=id(types.FrameType))
for package in PACKAGES:
    for path in source_files(package):
        try:
            root = importlib.machinery.SourceFileLoader('module', path).get_code('module')
        except (SyntaxError, ValueError):
            continue
        say_codes(root)
# what is longer than what is sent, and what lies elsewhere than in its object
Path = type('Path', (str,), {})
long = 'def ' + 'n' * 700 + '(): pass\n'
say_codes(compile(long, '/' + 'long/' * 200 + 'one.py', 'exec'))
say_codes(compile('x = 1\ny = 2\n', Path('/tmp/sub.py'), 'exec'))
say_codes(compile('\n'.join('x%d = [%d, y]' % (i, i) for i in range(3000)), 'wide.py', 'exec'))
say_codes(compile('def \u95a2\u6570():\n  pass\n', '/tmp/caf\xe9/\u95a2\u6570.py', 'exec'))
say(id=0)
sys.stdout.flush()
sys.stdin.read()
