/* What the workloads share: the gate, the clocks, and the line at the end.
 *
 *   1. the program prints "READY <pid>" and waits for a line on standard input;
 *   2. it does a fixed amount of work (0: until it is killed);
 *   3. it prints one line of JSON: wall and CPU seconds of the work;
 *   4. it stays until standard input is closed.
 * With GATE=0 in the environment it does not wait, neither before nor after. It ends after ten minutes in any case.
 */
#ifndef BENCH_H
#define BENCH_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NI __attribute__((noinline, noclone))

static double bench_wall, bench_cpu;

static inline double bench_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static inline int bench_gated(void) {
    const char *gate = getenv("GATE");
    return !(gate && gate[0] == '0');
}
static inline unsigned long bench_argument(int argc, char **argv, int index, unsigned long otherwise) {
    return argc > index ? strtoul(argv[index], 0, 0) : otherwise;
}
static inline void bench_begin(void) {
    char line[64];
    alarm(600);
    printf("READY %d\n", (int)getpid());
    fflush(stdout);
    if (bench_gated() && !fgets(line, sizeof line, stdin)) exit(3);
    bench_wall = bench_clock(CLOCK_MONOTONIC);
    bench_cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
}
static inline void bench_end(void) {
    char line[64];
    double cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID) - bench_cpu;
    double wall = bench_clock(CLOCK_MONOTONIC) - bench_wall;
    printf("{\"begun\":%.6f,\"wall\":%.6f,\"cpu\":%.6f}\n", bench_wall, wall, cpu);
    fflush(stdout);
    if (bench_gated()) while (fgets(line, sizeof line, stdin)) {}
}
#endif
