"""Where the line is hard to tell: handlers, cleaning up, calls over many lines, tables with large steps."""
import contextlib

from parking import case, hold, run


@case()
def after_except_as():
    try:
        int("no number")
    except ValueError as error:
        str(error)
    except KeyError:
        pass
    hold.acquire()  # PARKS


@case()
def in_except_as():
    try:
        [][0]
    except (KeyError, IndexError) as error:
        str(error)
        hold.acquire()  # PARKS


@case()
def in_finally():
    try:
        int("1")
    finally:
        hold.acquire()  # PARKS


@case()
def in_finally_after_return():
    def returning():
        for _ in range(3):
            try:
                return 1
            finally:
                try:
                    hold.acquire()  # PARKS
                finally:
                    pass

    returning()


@case()
def in_finally_after_raise():
    try:
        try:
            raise KeyError
        finally:
            hold.acquire()  # PARKS
    except KeyError:
        pass


@case()
def in_else():
    try:
        pass
    except KeyError:
        pass
    else:
        while True:
            hold.acquire()  # PARKS


class Parking:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        hold.acquire()  # PARKS


@case()
def in_exit():
    with contextlib.suppress(KeyError), Parking():
        for _ in range(3):
            str()


@case()
def in_exit_after_raise():
    with Parking():
        raise KeyError("raised")


def give(*values, **named):
    return values


def park(*_):
    hold.acquire()  # PARKS


@case()
def call_over_lines():
    give(
        1,
        give(
            2,
            park(
                3,
                4,
            ),
        ),
        named=give(),
    )


class Chained:
    def step(self, *_):
        return self

    def last(self):
        hold.acquire()  # PARKS


@case()
def chain_over_lines():
    (
        Chained()
        .step(
            1,
        )
        .step()
        .last()
        .step()
    )


@case()
def operators_over_lines():
    value = (
        1
        + len("a")
        + (
            len("b")
            if len("c") == 2
            else park() or 1
        )
        + 4
    )
    return value


@case()
def literals_over_lines():
    return {
        "first": [
            len("a"),
            f"""a
            {park()}
            b""",
        ],
        "second": 2,
    }


@case()
def arguments_over_lines():
    def function(
        first=len("a"),
        second=park(),
    ):
        pass


@case()
def decorator_over_lines():
    def decorator(*_):
        return park

    @decorator
    @decorator(
        1,
        2,
    )
    def function():
        pass


@case()
def comprehension_over_lines():
    return [
        give(
            x,
            park(
                y,
            ),
        )
        for x in range(2)
        if x >= 0
        for y in range(
            2,
        )
    ]


@case()
def lambda_over_lines():
    (
        lambda value:
        value
        or park(
            value,
        )
    )(
        0,
    )


@case()
def condition_over_lines():
    if (
        len("a") == 1
        and not (
            park()
        )
    ):
        pass


@case()
def backslashes():
    first = 1 + \
        len("a") + \
        len(park() or
            "b")
    return first


@case()
def loop_turned_back():
    for number in range(3):
        if number < 2:
            continue
        park()


@case()
def far_apart():
    """Lines and code further apart than a table's entry can say at once."""
    source = "def far():\n    give(1)\n" + "\n" * 1000 + "    give(\n" + "\n" * 300 + "park())\n" + "far()\n"
    run(source, "<far apart>", dict(give=give, park=park))


@case()
def far_down():
    run("\n" * 100000 + "def far():\n    give(\n\n1, park())\nfar()\n", "<far down>", dict(give=give, park=park))


@case()
def far_back():
    """The call's own line lies far above that of its last argument."""
    source = "def back():\n    park(" + "\n" * 500 + "give(1))\nback()\n"
    run(source, "<far back>", dict(give=give, park=park))


@case()
def long_code():
    """More than 65536 units of code, so that jumps and the like need extended arguments, before it parks."""
    many = "".join("    v%d = len('a') + %d\n" % (number, number) for number in range(9000))
    run("def long():\n  for _ in range(1):\n" + many + "    park(\nlen('a'))\nlong()\n", "<long>", dict(park=park))


@case()
def one_long_line():
    many = ", ".join("len('%d')" % number for number in range(2000))
    run("def wide(): return [%s, park([%s])]\nwide()\n" % (many, many), "<wide>", dict(park=park))


@case()
def many_names():
    """More constants and names than fit a byte."""
    many = "\n".join("    v%d = %d.5" % (number, number) for number in range(600))
    run("def named():\n" + many + "\n    park()\nnamed()\n", "<named>", dict(park=park))


@case()
def no_end_of_line():
    run("def last(): park()\nlast()", "<no end>", dict(park=park))


@case(since=(3, 8))
def walrus():
    run("def bind():\n  if (\n      a := 1\n  ) and (b := park()):\n    pass\nbind()\n", "<walrus>", dict(park=park))


@case(since=(3, 10))
def match_statement():
    source = (
        "class Point:\n  __match_args__ = ('x',)\n  def __init__(self): self.x = 1\n"
        "def matching(value):\n  match value:\n    case {'a': 1}:\n      pass\n"
        "    case Point(1) if (\n        park()):\n      pass\n"
        "matching(Point())\n"
    )
    run(source, "<match>", dict(park=park))


@case(since=(3, 11))
def except_star():
    source = (
        "try:\n  raise ExceptionGroup('g', [KeyError(1), OSError(2)])\n"
        "except* KeyError as e:\n  str(e)\nexcept* OSError as e:\n  str(e)\n  park()\n"
    )
    run(source, "<except star>", dict(park=park))
