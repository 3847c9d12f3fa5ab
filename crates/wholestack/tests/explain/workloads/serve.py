"""A web application that parks in its first request, for servers that have the interpreter in them (uWSGI)."""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import parking


class Application:
    def __call__(self, environ, start_response):
        case = parking.Case(Application)
        case.ident, case.native = threading.get_ident(), parking.native_id()
        return sorted([case], key=self.answer)

    def answer(self, case):
        # fmt: off
        os.write(1, parking.telling_of(case, sys._getframe()) + b"READY\n") and parking.hold.acquire()
        # fmt: on


application = Application()
