/* crowd SECONDS THREADS: so many threads at once, each with a name of its own (`thread NUMBER`) and with its part of the
 * CPU time, in one of three functions. Says how many there were, and how much time each function had. */
#define _GNU_SOURCE
#include "kit.h"
#include <pthread.h>

LEAF(work_a)
LEAF(work_b)
LEAF(work_c)
static uint64_t (*const works[3])(uint64_t) = {work_a, work_b, work_c};
static double cpu[3];
static unsigned threads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

NI uint64_t through(unsigned which, uint64_t n) { return works[which](n) ^ which; }

static double thread_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void *thread(void *argument) {
    unsigned number = (unsigned)(uintptr_t)argument, which = number % 3;
    char name[16];
    snprintf(name, sizeof name, "thread %u", number);
    pthread_setname_np(pthread_self(), name);
    pthread_barrier_wait(&together);
    /* 1 : 2 : 3 */
    double share = kit_budget * (which + 1) / (2 * threads), begun = thread_cpu(), used;
    uint64_t sum = 0;
    do sum += through(which, 2000); while ((used = thread_cpu() - begun) < share);
    pthread_mutex_lock(&lock);
    cpu[which] += used;
    kit_sink += sum;
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&together);
    return 0;
}
int main(int argc, char **argv) {
    static const char *const names[] = {"work_a", "work_b", "work_c"};
    static pthread_t ids[10000];
    pthread_attr_t small;
    char more[64];
    kit_begin(argc, argv);
    threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    if (threads > 10000) return 2;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&together, 0, threads);
    for (uintptr_t i = 0; i < threads; i++)
        if (pthread_create(&ids[i], &small, thread, (void *)i)) return 5;
    for (unsigned i = 0; i < threads; i++) pthread_join(ids[i], 0);
    snprintf(more, sizeof more, ",\"threads\":%u", threads);
    kit_end(3, names, cpu, more);
    return 0;
}
