/* A clock that a profile is read by: phase_000 to phase_499, each a function of its own that spins until its time is over.
 * The lowest one in a profile tells when the first sample was taken.
 *
 *   phases MILLISECONDS
 */
#include "bench.h"

#define PHASES 500

#define P(n)                                                                                                           \
    NI void phase_##n(double until) {                                                                                  \
        while (bench_clock(CLOCK_MONOTONIC) < until) __asm__ volatile("# phase " #n);                                  \
    }
#define P10(h) P(h##0) P(h##1) P(h##2) P(h##3) P(h##4) P(h##5) P(h##6) P(h##7) P(h##8) P(h##9)
#define P100(h) P10(h##0) P10(h##1) P10(h##2) P10(h##3) P10(h##4) P10(h##5) P10(h##6) P10(h##7) P10(h##8) P10(h##9)
P100(0) P100(1) P100(2) P100(3) P100(4)

#define R(n) phase_##n,
#define R10(h) R(h##0) R(h##1) R(h##2) R(h##3) R(h##4) R(h##5) R(h##6) R(h##7) R(h##8) R(h##9)
#define R100(h) R10(h##0) R10(h##1) R10(h##2) R10(h##3) R10(h##4) R10(h##5) R10(h##6) R10(h##7) R10(h##8) R10(h##9)
static void (*const phases[PHASES])(double) = {R100(0) R100(1) R100(2) R100(3) R100(4)};

int main(int argc, char **argv) {
    double length = bench_argument(argc, argv, 1, 10) * 1e-3;
    bench_begin();
    for (int i = 0; i < PHASES; i++) phases[i](bench_wall + (i + 1) * length);
    bench_end();
    return 0;
}
