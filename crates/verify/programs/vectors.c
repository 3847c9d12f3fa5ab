/* Vector registers on the stack, which realign it, and vector arguments through linkage stubs. */
#include <math.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef double wide __attribute__((vector_size(32)));
typedef float widest __attribute__((vector_size(64)));

volatile double sink;

NOINLINE static double lane(const wide *value, int index) { return ((const double *)value)[index]; }

NOINLINE static wide spill(double seed) {
    wide one = { seed, seed + 1, seed + 2, seed + 3 };
    wide two = one * one;
    sink = lane(&two, 1);
    return one + two;
}

NOINLINE static double through_memory(wide a, wide b, int index) {
    wide kept[3] = { a, b, a * b };
    return lane(&kept[index], index) + lane(&kept[2], 0);
}

NOINLINE static float widened(float seed) {
    widest value;
    for (int i = 0; i < 16; i++) value[i] = seed + (float)i;
    value *= value;
    sink = ((volatile float *)&value)[3];
    return value[7];
}

NOINLINE static double loop(const double *values, int count) {
    double total = 0;
    for (int i = 0; i < count; i++) total += values[i] * values[count - 1 - i];
    return total;
}

int main(void) {
    double values[40];
    char text[64];
    for (int i = 0; i < 40; i++) values[i] = sqrt(i + 0.5) + cos(i);
    wide one = spill(1.25), two = spill(2.5);
    sink = through_memory(one, two, 1) + widened(3.5f) + loop(values, 40);
    snprintf(text, sizeof text, "%.3f %g %s", pow(1.7, 2.3), exp(0.5), "text");
    return 0;
}
