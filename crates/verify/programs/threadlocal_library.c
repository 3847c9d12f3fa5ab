/* The library of threadlocal.c. */
#include <stdlib.h>

static __thread long total;
__thread long visible[20];

__attribute__((noinline)) static long step(long value) {
    visible[value & 7] += value;
    return labs(value) + visible[3];
}

long add(long value) {
    total += step(value);
    return total;
}
