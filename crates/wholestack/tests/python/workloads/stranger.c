/* A thread of C alone. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

static pthread_t thread;
static double budget, used;

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) unsigned long stranger_leaf(unsigned long n) {
    unsigned long x = n | 1;
    for (unsigned long i = 0; i < n; i++) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

static volatile unsigned long sink;

static void *stranger_main(void *argument) {
    (void)argument;
    pthread_setname_np(pthread_self(), "stranger");
    double begun = cpu();
    while ((used = cpu() - begun) < budget) sink = stranger_leaf(20000);
    return 0;
}

void start_stranger(double seconds) {
    budget = seconds;
    pthread_create(&thread, 0, stranger_main, 0);
}

double join_stranger(void) {
    pthread_join(thread, 0);
    return used;
}
