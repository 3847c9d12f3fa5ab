"""Who calls whom, from which line, as the interpreter has it."""
import contextlib
import inspect
import sys
import threading

import telling

GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Calls:
    """Collects the calls of threads that are started while it watches."""

    def __init__(self):
        self.functions = {}
        self.calls = set()
        self.numbers = {}
        self.makers = set()

    def number_of(self, code):
        """Functions that cannot be told apart, as those made by the same source twice, are one."""
        number = self.numbers.get(code)
        if number is None:
            key = telling.name_of(code), code.co_filename, code.co_firstlineno
            number, place = self.functions.setdefault(key, (len(self.functions), telling.place(code, [])))
            place[2] = sorted(set(place[2]) | set(telling.lines_of(code)))
            self.numbers[code] = number
        return number

    def note(self, frame):
        """A frame that was just entered, and those below it."""
        while frame is not None:
            back = frame.f_back
            caller = (-1, 0) if back is None else (self.number_of(back.f_code), back.f_lineno)
            call = caller + (self.number_of(frame.f_code),)
            if call in self.calls:
                break
            self.calls.add(call)
            frame = back

    def watch(self, frame, event, argument):
        if event == "call":
            self.note(frame)

    def note_makers(self):
        """From 3.11 on, a generator is made by its own code, in its first line, of which nobody is told. Who may call
        that is known by names, except for what contextlib has as an argument."""
        if sys.version_info < (3, 11):
            return
        for made in [code for code in self.numbers if code.co_flags & GENERATOR]:
            for maker in self.numbers:
                named = made.co_name in maker.co_names + maker.co_varnames + maker.co_freevars
                if named or made in maker.co_consts or maker.co_filename == contextlib.__file__:
                    self.makers.add((self.numbers[maker], self.numbers[made]))

    def __enter__(self):
        threading.setprofile(self.watch)
        return self

    def __exit__(self, *_):
        threading.setprofile(None)

    def say(self):
        """A call is [caller, its line, callee]; -1 is who calls a thread's first function."""
        self.note_makers()
        functions = [place for _, place in sorted(self.functions.values(), key=lambda pair: pair[0])]
        telling.say(functions=functions, calls=sorted(self.calls), makers=sorted(self.makers))
