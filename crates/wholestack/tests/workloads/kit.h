/* What the C and C++ workloads share: the gate, the budget of CPU time, and work of a known amount.
 *
 *   1. the program prints "READY <pid>" and waits for a line on standard input;
 *   2. it works until it has used so many seconds of CPU time as its first argument says;
 *   3. it prints one line of JSON: the CPU time of the work, and how much it did of each kind;
 *   4. it stays until standard input is closed.
 * With GATE=0 in the environment it does not wait, neither before nor after.
 *
 * All work is the same chain of dependent operations, so iterations are a measure of time. What comes next is drawn
 * by lot, so that no rate of sampling can be in step with it.
 */
#ifndef KIT_H
#define KIT_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NI __attribute__((noinline, noclone))

/* A function that does `n` iterations and nothing else. Needs no stack frame. */
#define LEAF(name)                                                                                                     \
    NI uint64_t name(uint64_t n) {                                                                                     \
        uint64_t x = n | 1;                                                                                            \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            x ^= x << 13;                                                                                              \
            x ^= x >> 7;                                                                                               \
            x ^= x << 17;                                                                                              \
            x += sizeof #name;                                                                                         \
        }                                                                                                              \
        return x;                                                                                                      \
    }

static uint64_t kit_state = 88172645463325252ull;
static volatile uint64_t kit_sink;
static double kit_budget, kit_begun;

static inline double kit_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
/* A number from 0 to below `n`. */
static inline unsigned kit_random(unsigned n) {
    kit_state ^= kit_state << 13;
    kit_state ^= kit_state >> 7;
    kit_state ^= kit_state << 17;
    return (unsigned)((kit_state >> 32) % n);
}
static inline int kit_gated(void) {
    const char *gate = getenv("GATE");
    return !(gate && gate[0] == '0');
}
static inline void kit_begin(int argc, char **argv) {
    char line[64];
    kit_budget = argc > 1 ? atof(argv[1]) : 1;
    printf("READY %d\n", (int)getpid());
    fflush(stdout);
    if (kit_gated() && !fgets(line, sizeof line, stdin)) exit(3);
    kit_begun = kit_cpu();
}
/* Whether there is CPU time left. */
static inline int kit_more(void) { return kit_cpu() - kit_begun < kit_budget; }

/* The result: `count` names and amounts, and more members of the JSON object, each after a comma. */
static inline void kit_end(int count, const char *const *names, const double *amounts, const char *more) {
    char line[64];
    printf("{\"cpu_s\":%.6f,\"truth\":{", kit_cpu() - kit_begun);
    for (int i = 0; i < count; i++) printf("%s\"%s\":%.9g", i ? "," : "", names[i], amounts[i]);
    printf("}%s}\n", more ? more : "");
    fflush(stdout);
    if (kit_gated())
        while (fgets(line, sizeof line, stdin)) {}
}
#endif
