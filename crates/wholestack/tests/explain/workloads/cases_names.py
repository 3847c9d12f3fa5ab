"""Names and paths of all kinds of strings."""
import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
import types
import warnings

from parking import SOURCES, case, hold, run

# One of each width: Latin-1, two bytes (Cyrillic, Chinese), four bytes (Gothic); and one that normalises to ASCII.
NAMES = {
    "latin": "caf\u00e9_gr\u00fc\u00dfe",
    "cyrillic": "\u043c\u043e\u0434\u0443\u043b\u044c",
    "chinese": "\u6a21\u5757",
    "gothic": "\U00010330\U00010331\U00010332",
    "normalised": "\U0001d4c2\U0001d4b6\U0001d4c9\U0001d4bd",
}
# Not all of what a path may have may be in a name.
PATHS = dict(NAMES, emoji="\U0001f40d snake", spaced="  two  spaces", marks="semi;colon\ttab\nline\x1b[31m\"quoted\"")


def module(kind, name, path):
    """Imports a module in a directory of this name; its body parks in a method of a class of this name."""
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory, True)
    folder = os.path.join(directory, path)
    os.mkdir(folder)
    file = os.path.join(folder, path + ".py")
    source = (
        "# coding: utf-8\n"
        "from parking import hold\n"
        "class {0}:\n"
        "    def {0}(self):\n"
        "        def {0}_inner(): hold.acquire()  # PARKS\n"
        "        return {0}_inner()\n"
        "{0}().{0}()\n"
    ).format(name)
    with open(file, "w", encoding="utf-8") as out:
        out.write(source)
    SOURCES[file] = source
    spec = importlib.util.spec_from_file_location("module_" + kind, file)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def register(kind, name, path):
    def function():
        module(kind, name, path)

    function.__name__ = "named_" + kind
    case()(function)


for kind, path in PATHS.items():
    register(kind, NAMES.get(kind, "plain"), path)


@case()
def path_of_other_bytes():
    """Bytes that are no UTF-8, as an old file system may have them."""
    name = os.fsdecode(b"/caf\xe9/\xff.py")
    run("def bytes():\n    hold.acquire()  # PARKS\nbytes()\n", name)


@case()
def no_path():
    run("def nowhere():\n    hold.acquire()  # PARKS\nnowhere()\n", "")


@case()
def strange_path():
    run("def strange():\n    hold.acquire()  # PARKS\nstrange()\n", "<exec 'in' \"quotes\"; \\ \x01\x7f\n\t\u202e\u0085>")


@case()
def long_path():
    run("def far():\n    hold.acquire()  # PARKS\nfar()\n", "/" + "\u00fc/".join(["directory"] * 300))


@case()
def long_name():
    name = "n" * 2000
    run("def %s():\n    hold.acquire()  # PARKS\n%s()\n" % (name, name), "<long name>")


@case(since=(3, 8))
def strange_name():
    """Names that no source can have."""
    def function():
        hold.acquire()  # PARKS

    code = function.__code__.replace(co_name="a b;c\n\t\"\\\x00\x1b[0m (x:1)")
    if sys.version_info >= (3, 11):
        code = code.replace(co_qualname=code.co_name)
    types.FunctionType(code, globals())()


@case(since=(3, 8))
def lone_surrogate():
    def function():
        hold.acquire()  # PARKS

    name = "<\ud800 \udfff>"
    SOURCES[name] = "\n" * (function.__code__.co_firstlineno) + "hold.acquire()  # PARKS"
    types.FunctionType(function.__code__.replace(co_filename=name), globals())()


@case(needs=("ctypes",), until=(3, 12))
def legacy_strings():
    """Strings of the old kind, whose characters lie elsewhere, as old extensions make them."""
    import ctypes

    warnings.simplefilter("ignore")
    api = ctypes.pythonapi
    new, address = api.PyUnicode_FromUnicode, api.PyUnicode_AsUnicode
    new.restype, address.restype = ctypes.py_object, ctypes.c_void_p

    def legacy(text):
        made = new(None, ctypes.c_ssize_t(len(text)))
        wide = ctypes.create_unicode_buffer(text)
        ctypes.memmove(address(ctypes.py_object(made)), wide, ctypes.sizeof(ctypes.c_wchar) * len(text))
        assert len(made) == len(text)
        return made

    def nested(texts):
        if not texts:
            hold.acquire()  # PARKS
        else:
            SOURCES[texts[0]] = source = "def old(): nested(texts)\nold()\n"
            exec(compile(source, legacy(texts[0]), "exec"), dict(nested=nested, texts=texts[1:]))

    nested(["<old>", "<\u00f6ld>", "<\u0441\u0442\u0430\u0440>", "<\U00010330>"])
