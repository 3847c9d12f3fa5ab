/* Eight threads with names, each with a function of its own and another amount of work. */
#define _GNU_SOURCE
#include "kit.h"
#include <pthread.h>

LEAF(work_1)
LEAF(work_2)
LEAF(work_3)
LEAF(work_4)
LEAF(work_5)
LEAF(work_6)
LEAF(work_7)
LEAF(work_8)
static uint64_t (*const works[8])(uint64_t) = {work_1, work_2, work_3, work_4, work_5, work_6, work_7, work_8};
static double cpu[8];
static pthread_barrier_t together;

NI uint64_t through(unsigned which, uint64_t n) { return works[which](n) ^ which; }

static void *thread(void *argument) {
    unsigned which = (unsigned)(uintptr_t)argument;
    char name[16];
    snprintf(name, sizeof name, "worker %u", which + 1);
    pthread_setname_np(pthread_self(), name);
    pthread_barrier_wait(&together);
    struct timespec t;
    double share = kit_budget * (which + 1) / 36, used;
    uint64_t sum = 0;
    do {
        sum += through(which, 20000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        used = t.tv_sec + t.tv_nsec * 1e-9;
    } while (used < share);
    cpu[which] = used;
    kit_sink += sum;
    return 0;
}
int main(int argc, char **argv) {
    static const char *const names[] = {"work_1", "work_2", "work_3", "work_4", "work_5", "work_6", "work_7", "work_8"};
    pthread_t threads[8];
    kit_begin(argc, argv);
    pthread_barrier_init(&together, 0, 8);
    for (uintptr_t i = 0; i < 8; i++) pthread_create(&threads[i], 0, thread, (void *)i);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    kit_end(8, names, cpu, 0);
    return 0;
}
