"""Writes the line table of every code object of the standard library, and what this interpreter itself says that it means.

Little-endian numbers of four bytes to the standard output. For each code object: co_firstlineno, the bytes of its table, the
bytes of its code, the number of runs; then the table, then the runs: the offset behind each, and its line, -1 for none.
Three numbers at the end: -1, the number of files, and that of files that this interpreter does not compile.
"""
import array
import dis
import importlib.machinery
import os
import struct
import sys
import sysconfig
import warnings

sys.dont_write_bytecode = True
warnings.simplefilter('ignore')


def runs_by_co_lines(code):
    runs = array.array('i')
    for begin, end, line in code.co_lines():
        if begin < end:
            runs.extend((end, -1 if line is None else line))
    return runs


def runs_by_line_starts(code):
    runs = array.array('i')
    previous = None
    for begin, line in dis.findlinestarts(code):
        if begin and previous is not None:
            runs.extend((begin, previous))
        previous = line
    runs.extend((len(code.co_code), code.co_firstlineno if previous is None else previous))
    return runs


if sys.version_info >= (3, 10):
    runs_of, table_of = runs_by_co_lines, lambda code: code.co_linetable
else:
    runs_of, table_of = runs_by_line_starts, lambda code: code.co_lnotab


def codes_of(root):
    pending = [root]
    while pending:
        code = pending.pop()
        yield code
        pending.extend(constant for constant in code.co_consts if isinstance(constant, type(root)))


def write(root, to):
    for code in codes_of(root):
        table, runs = table_of(code), runs_of(code)
        to.write(struct.pack('<iIII', code.co_firstlineno, len(table), len(code.co_code), len(runs) // 2))
        to.write(table)
        to.write(runs.tobytes())


def sources():
    for directory, directories, files in os.walk(sysconfig.get_path('stdlib')):
        directories[:] = [name for name in directories if name not in ('site-packages', 'dist-packages', '__pycache__')]
        for name in files:
            if name.endswith('.py'):
                yield os.path.join(directory, name)


read, refused = 0, 0
for path in sources():
    try:
        root = importlib.machinery.SourceFileLoader('module', path).get_code('module')
    except (SyntaxError, ValueError, RecursionError):
        refused += 1
        continue
    read += 1
    write(root, sys.stdout.buffer)
sys.stdout.buffer.write(struct.pack('<iII', -1, read, refused))
sys.stdout.buffer.flush()
