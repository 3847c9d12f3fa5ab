/* Functions of many shapes, each called: leaves, frames, alloca, realigned stacks, switches, tail calls, recursion. */
#include <alloca.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

NOINLINE long leaf(long a) { return a * 3 + 1; }
NOINLINE long tail(long a) { return leaf(a + 1); }
NOINLINE long deep(long n) { return n <= 0 ? 1 : deep(n - 1) + leaf(n); }

NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
    return leaf(a) + leaf(b) * leaf(c) + leaf(d) * leaf(e) + leaf(f) * leaf(g) + h;
}

NOINLINE long variable(long n)
{
    char *bytes = alloca(n * 17);
    memset(bytes, (int)n, n * 17);
    return bytes[n] + leaf(n);
}

NOINLINE long realigned(long n)
{
    _Alignas(64) volatile long array[32];
    for (long i = 0; i < 32; i++) array[i] = leaf(i * n);
    return array[n & 31];
}

NOINLINE long choose(long n)
{
    switch (n) {
    case 0: return leaf(5);
    case 1: return tail(6) + leaf(7);
    case 2: return variable(8);
    case 3: return deep(3);
    case 4: return realigned(2);
    case 5: return many(1, 2, 3, 4, 5, 6, 7, 8);
    default: return n;
    }
}

NOINLINE long guarded(long n)
{
    if (n < 0) abort();
    return n > 100 ? exit(3), 0 : choose(n);
}

static int order(const void *a, const void *b) { return (int)(leaf(*(const long *)a) - leaf(*(const long *)b)); }

NOINLINE long sorted(long n)
{
    long values[64];
    for (long i = 0; i < 64; i++) values[i] = (i * 37 + n) % 64;
    qsort(values, 64, sizeof *values, order);
    return values[5];
}

static jmp_buf back;
NOINLINE void jumps(long n) { longjmp(back, (int)n); }

int main(void)
{
    long sum = 0;
    for (long round = 0; round < 20; round++) {
        for (long n = 0; n < 8; n++) sum += guarded(n);
        sum += sorted(round);
        if (!setjmp(back)) jumps(1);
        char text[64];
        snprintf(text, sizeof text, "%ld %g %s", sum, (double)round / 3, "text");
        sum += (long)strlen(text);
    }
    return sum == 0;
}
