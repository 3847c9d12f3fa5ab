/* setjmp and longjmp over frames of all kinds; functions with a cold part; calls that do not return as a function's
 * last instruction. */
#include <alloca.h>
#include <setjmp.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;
static jmp_buf near_buffer, far_buffer;

NOINLINE __attribute__((noreturn)) static void away(long value) { longjmp(near_buffer, (int)value); }

NOINLINE __attribute__((noreturn)) static void far_away(long value) {
    sink = value;
    longjmp(far_buffer, (int)value);
}

NOINLINE __attribute__((noreturn, cold)) static void failed(const char *text, long value) {
    sink = (long)text[0] + value;
    far_away(value);
}

NOINLINE static long checked(long value, long limit) {
    if (__builtin_expect(value >= limit, 0)) failed("limit", value);
    return value + 1;
}

NOINLINE static long with_cold_part(long value, long *values) {
    long total = 0;
    for (long i = 0; i < 4; i++) {
        if (__builtin_expect(values[i] == value, 0)) {
            sink = value;
            values[i] = checked(total, 1000) + sink;
            failed("found", values[i] + i);
        }
        total += checked(values[i], 100);
    }
    return total;
}

NOINLINE static long down(long depth, long value) {
    char *memory = alloca(depth * 40 + 16);
    memory[depth] = (char)value;
    if (depth == 0) away(value);
    return down(depth - 1, value) + memory[depth];
}

NOINLINE static long aligned_down(long depth, long value) {
    _Alignas(64) char bytes[128];
    bytes[depth] = 1;
    if (depth == 0) far_away(value);
    return aligned_down(depth - 1, value) + bytes[depth];
}

NOINLINE static long nested(long value) {
    if (setjmp(near_buffer) == 0) sink = down(value, value + 1);
    if (setjmp(near_buffer) == 0) sink = down(1, value + 2);
    return aligned_down(value, value + 3);
}

int main(void) {
    long values[4] = { 1, 2, 3, 4 };
    for (volatile long i = 0; i < 4; i++)
        if (setjmp(far_buffer) == 0) sink = nested(i);
    if (setjmp(far_buffer) == 0) sink = checked(7, 5);
    if (setjmp(far_buffer) == 0) sink = with_cold_part(9, values);
    if (setjmp(far_buffer) == 0) sink = with_cold_part(3, values);
    if (setjmp(far_buffer) == 0) exit(checked(-1, 5));
    return 0;
}
