"""Event loops: while a coroutine runs, and while all of them wait."""
import asyncio

from parking import case, hold


def in_loop(coroutine):
    """Like asyncio.run, which 3.6 does not have."""
    asyncio.new_event_loop().run_until_complete(coroutine)


async def ticks():
    for tick in range(3):
        yield tick
        await asyncio.sleep(0)


class Manager:
    async def __aenter__(self):
        await asyncio.sleep(0)

    async def __aexit__(self, *_):
        async for tick in ticks():
            if tick:
                self.blocking()

    def blocking(self):
        hold.acquire()  # PARKS


async def innermost():
    async with Manager():
        pass


async def middle():
    await asyncio.sleep(0)
    await innermost()


async def idle(seconds):
    await asyncio.sleep(seconds)


async def gathering():
    others = [asyncio.ensure_future(idle(10 ** 6 + number)) for number in range(5)]
    await asyncio.gather(middle(), *others)


async def waiting():
    await asyncio.gather(*[idle(10 ** 6 + number) for number in range(5)])


@case()
def asyncio_running():
    in_loop(gathering())


@case(mark=".poll(")
def asyncio_idle():
    in_loop(waiting())


@case()
def asyncio_callback():
    loop = asyncio.new_event_loop()
    loop.call_later(0.001, lambda: hold.acquire())  # PARKS
    loop.run_forever()


class Awaitable:
    def __await__(self):
        yield from self.steps()

    def steps(self):
        hold.acquire()  # PARKS
        yield


async def awaiting(depth):
    if depth:
        return await awaiting(depth - 1)
    return [value async for value in agen()]


async def agen():
    yield await Awaitable()


@case()
def coroutine_by_hand():
    """Without a loop, 100 deep."""
    awaiting(100).send(None)
