# Every way in which frames are pushed and popped, twice: as new code, and as code that has adapted itself.
import os, signal

SOURCE = '''
def leaf(a, b=2): return a + b
def star(*args, **more): return leaf(*args) + len(more)
def keywords(a, *, b): return leaf(a, b=b)
def recur(n): return n and recur(n - 1)

def closure(n):
    def inner(m): return leaf(n, m)
    return inner(3)

class Plain:
    def __init__(self, n): self.n = leaf(n)
    def method(self): return self.n
    def __len__(self): return leaf(1)
    def __getitem__(self, i): return leaf(i)
    def __eq__(self, other): return self.method() == other.method()
    def __add__(self, other): return leaf(self.n, other.n)
    @property
    def value(self): return self.method()
    @staticmethod
    def alone(): return leaf(0)
    @classmethod
    def made(cls): return cls(5)
    def __enter__(self): return self
    def __exit__(self, *what): return leaf(1) > 0

class Dies:
    def __del__(self): leaf(1)

class Dynamic:
    def __getattr__(self, name): return leaf(len(name))
    def __call__(self, a): return leaf(a)

def count(n):
    for i in range(n):
        got = yield leaf(i)
        if got: yield got

def chain(n):
    yield from count(n)
    return (yield from count(1))

def raises(n):
    if n: return raises(n - 1)
    raise ValueError(leaf(n))

def catches():
    try: raises(3)
    except ValueError: pass
    finally: leaf(1)

def generators():
    for value in count(2): leaf(value)
    for value in chain(2): leaf(value)
    g = count(3)
    next(g); g.send(7); g.close()
    g = count(2)
    next(g)
    try: g.throw(KeyError())
    except KeyError: pass
    sum(leaf(i) for i in range(2))
    list(map(leaf, count(2)))
    del g

class Ready:
    def __await__(self):
        yield leaf(1)
        return leaf(2)

class Several:
    def __init__(self): self.left = 2
    def __aiter__(self): return self
    async def __anext__(self):
        self.left -= 1
        if self.left < 0: raise StopAsyncIteration
        return leaf(self.left)
    async def __aenter__(self): return self
    async def __aexit__(self, *what): return None

async def waits(n):
    if n: return await waits(n - 1)
    return await Ready()

async def agen():
    yield leaf(1)
    await Ready()
    yield leaf(2)

async def asynchronous():
    await waits(2)
    async for value in Several(): leaf(value)
    async with Several(): leaf(1)
    async for value in agen(): leaf(value)
    [value async for value in agen()]

def coroutine():
    c = asynchronous()
    try:
        while True: c.send(None)
    except StopIteration: pass

def callbacks():
    sorted([3, 1, 2], key=leaf)
    sorted([3, 1, 2], key=lambda n: recur(1))
    list(map(closure, [1, 2]))
    max(Plain(1), Plain(2), key=Plain.method)
    list(filter(Dynamic(), [1]))

def objects():
    p = Plain(1)
    p.method(); p.value; len(p); p[1]; p == Plain(2); p + p; Plain.alone(); Plain.made()
    for i, value in zip(range(2), p): leaf(value)
    with p: leaf(1)
    with Plain(1): raises(1)
    bound = p.method
    bound(); Dynamic().name; Dynamic()(1)
    getattr(Dynamic(), 'other')
    [leaf(i) for i in range(2)]
    {leaf(i): recur(1) for i in range(2)}

def dies():
    d = Dies()
    d = None
    Dies()
    def holds():
        d = Dies()
        return leaf(1)
    holds()
    def lost():
        d = Dies()
        raises(1)
    try: lost()
    except ValueError: pass
    # the same of frames that C has called
    list(map(lambda n: doomed(n), [1]))
    list(map(doomed, [1]))
    list(doomed_generator())
    try: list(map(lambda n, d=None: (Dies(), raises(1)), [1]))
    except ValueError: pass
    try: list(map(doomed, ['']))
    except ZeroDivisionError: pass

def doomed(n):
    d = Dies()
    if not n: return 1 // 0
    return n

def doomed_generator():
    d = Dies()
    yield 1

def compiled(): exec('leaf(1); recur(1)', globals()); eval('leaf(2)', globals())
def defines():
    class Local:
        value = leaf(1)
        def method(self): return super().__init__()
    Local().method()

def everything():
    leaf(1); star(1, 2, c=3); star(*(1,)); keywords(1, b=2); leaf(b=1, **{'a': 2}); recur(5); closure(1)
    objects(); generators(); catches(); coroutine(); callbacks(); dies(); compiled(); defines()
'''

def build():
    names = {'__name__': 'workload'}
    exec(compile(SOURCE, 'workload', 'exec'), names)
    return names['everything']

adapted, new = build(), build()
for _ in range(300): adapted()
os.write(1, b'READY\n')
os.read(0, 1)
adapted()
new()
new()
os.kill(os.getpid(), signal.SIGUSR1)
