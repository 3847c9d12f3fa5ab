/* Stack pointers that move: alloca, variable-length arrays, large frames with probes, realigned frames. */
#include <alloca.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;

NOINLINE static long touch(volatile char *bytes, long size) {
    for (long at = 0; at < size; at += 512) bytes[at] = (char)at;
    return bytes[size / 2];
}

NOINLINE static long with_alloca(long size) {
    char *memory = alloca(size);
    return touch(memory, size);
}

NOINLINE static long with_array(long size) {
    long total = 0;
    for (long i = 1; i <= 3; i++) {
        char array[size * i];
        total += touch(array, size * i);
    }
    return total;
}

NOINLINE static long large(void) {
    char array[3 * 4096 + 100];
    return touch(array, sizeof array);
}

NOINLINE static long very_large(void) {
    char array[20 * 4096];
    return touch(array, sizeof array);
}

NOINLINE static long aligned_32(long a) {
    _Alignas(32) char bytes[96];
    memset(bytes, (int)a, sizeof bytes);
    return touch(bytes, sizeof bytes);
}

NOINLINE static long aligned_64(long a, long b, long c, long d, long e, long f, long g, long h) {
    _Alignas(64) char bytes[192];
    bytes[(a + b + c + d + e + f) & 63] = 1;
    return touch(bytes, sizeof bytes) + g * h;
}

NOINLINE static long aligned_array(long size) {
    _Alignas(64) char bytes[128];
    char array[size];
    return touch(bytes, sizeof bytes) + touch(array, size);
}

NOINLINE static long aligned_recursion(long depth, long size) {
    _Alignas(128) char bytes[256];
    char array[size];
    long below = depth > 0 ? aligned_recursion(depth - 1, size + 24) : touch(array, size);
    return below + touch(bytes, sizeof bytes);
}

/* Callers that find their frame by rbp, and a callee that has only just given it back. */
NOINLINE static long arrays_around_aligned(long depth, long size) {
    char array[size];
    long below = depth > 0 ? arrays_around_aligned(depth - 1, size + 8) : aligned_array(size);
    return below + touch(array, size);
}

NOINLINE static long large_and_aligned(long size) {
    _Alignas(64) char bytes[3 * 4096];
    char array[size];
    return touch(bytes, sizeof bytes) + touch(array, size);
}

NOINLINE static long early_out(long a) {
    if (a < 3) return a;
    _Alignas(64) char bytes[128];
    char array[a];
    return touch(bytes, sizeof bytes) + touch(array, a);
}

NOINLINE static long saved_in_block(long size) {
    long total = 0;
    {
        char first[size];
        total += touch(first, size);
    }
    if (size & 8) {
        char second[size * 2];
        return total + touch(second, size * 2);
    }
    return total + with_alloca(size);
}

int main(void) {
    for (long size = 24; size < 20000; size = size * 3 + 8) {
        sink = with_alloca(size) + with_array(size) + saved_in_block(size);
        sink = aligned_array(size) + large_and_aligned(size);
    }
    sink = large() + very_large() + aligned_32(3) + aligned_64(1, 2, 3, 4, 5, 6, 7, 8);
    sink = arrays_around_aligned(3, 48) + aligned_recursion(4, 40) + early_out(1) + early_out(100);
    return 0;
}
