/* Prologues and epilogues of many shapes: recursion, tail calls, many arguments, varargs, callbacks, structures. */
#include <stdarg.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;

struct big { long values[12]; };

NOINLINE static long leaf(long a) { sink = a; return a * 3 + 1; }

NOINLINE static long red_zone(long a) {
    volatile long local[12];
    for (int i = 0; i < 12; i++) local[i] = a + i;
    return local[3] ^ local[9];
}

NOINLINE static long recurse(long n) { return n <= 0 ? leaf(n) : recurse(n - 1) + leaf(n) * n; }

NOINLINE static long odd(long n);
NOINLINE static long even(long n) { sink = n; return n == 0 ? 1 : odd(n - 1); }
NOINLINE static long odd(long n) { sink = n; return n == 0 ? 0 : even(n - 1); }

NOINLINE static long tail(long a, long b) { sink = a; return leaf(a + b); }

NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
    return leaf(a + b * c - d) + e * f + g + h * i + j;
}

NOINLINE static long callee_saved(long a, long b, long c, long d, long e, long f) {
    long one = leaf(a), two = leaf(b), three = leaf(c), four = leaf(d), five = leaf(e), six = leaf(f);
    long seven = many(one, two, three, four, five, six, a, b, c, d);
    return one * two + three * four + five * six + seven;
}

NOINLINE static long shrink_wrapped(long a, long b) {
    if (a < 100) return a + b;
    long one = leaf(a), two = leaf(b);
    return callee_saved(one, two, a, b, one + two, a - b);
}

NOINLINE static long sum(int count, ...) {
    va_list list;
    va_start(list, count);
    long total = 0;
    for (int i = 0; i < count; i++) total += va_arg(list, long);
    va_end(list);
    return leaf(total);
}

NOINLINE static double sum_doubles(int count, ...) {
    va_list list;
    va_start(list, count);
    double total = 0;
    for (int i = 0; i < count; i++) total += va_arg(list, double);
    va_end(list);
    return total;
}

NOINLINE static struct big make(long seed) {
    struct big value;
    for (int i = 0; i < 12; i++) value.values[i] = leaf(seed + i);
    return value;
}

NOINLINE static long take(struct big value, long index) { return leaf(value.values[index]); }

NOINLINE static int compare(const void *a, const void *b) {
    long left = *(const long *)a, right = *(const long *)b;
    return (left > right) - (left < right);
}

NOINLINE static long apply(long (*function)(long), long times) {
    long value = 1;
    for (long i = 0; i < times; i++) value += function(value & 3);
    return value;
}

NOINLINE static long switched(long kind, long value) {
    switch (kind) {
    case 0: return leaf(value);
    case 1: return red_zone(value);
    case 2: return recurse(value & 3);
    case 3: return even(value & 7);
    case 4: return tail(value, kind);
    case 5: return sum(3, value, value, kind);
    default: return shrink_wrapped(value, kind);
    }
}

int main(void) {
    long values[24];
    for (int i = 0; i < 24; i++) values[i] = (i * 7919L) % 101;
    qsort(values, 24, sizeof values[0], compare);
    for (long kind = 0; kind < 8; kind++) sink = switched(kind, values[kind] + 90);
    sink = recurse(12);
    sink = odd(9);
    sink = sum(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L);
    sink = (long)sum_doubles(4, 1.5, 2.5, 3.5, 4.5);
    sink = take(make(5), 7);
    sink = apply(leaf, 3) + apply(red_zone, 2) + apply(recurse, 2);
    sink = shrink_wrapped(500, 4) + shrink_wrapped(5, 4);
    return 0;
}
