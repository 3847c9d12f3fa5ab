/* Work in the C library, on two threads: sorting with calls back, copying, allocating, formatting, reading, locking, and a signal
 * handler. The truth is the CPU time around each, of both threads. */
#define _GNU_SOURCE
#include "kit.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

enum { KINDS = 7 };
static int zero;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t locked;
struct memory { char from[1 << 16], to[1 << 16]; uint64_t numbers[2000]; };
static struct memory memories[2];
LEAF(leaf_compare)
LEAF(leaf_handler)

NI int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    kit_sink += leaf_compare(5);
    return (x > y) - (x < y);
}
NI uint64_t sorting(struct memory *m) {
    uint64_t x = kit_sink | 1;
    for (int i = 0; i < 2000; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        m->numbers[i] = x;
    }
    qsort(m->numbers, 2000, sizeof m->numbers[0], compare);
    return m->numbers[0];
}
NI uint64_t copying(struct memory *m) {
    for (int i = 0; i < 100; i++) {
        memcpy(m->to, m->from, sizeof m->to);
        __asm__ volatile("" : : "r"(m) : "memory");
    }
    return (uint64_t)m->to[5];
}
NI uint64_t allocating(struct memory *m) {
    void *all[64];
    uint64_t sum = (uint64_t)m->to[0];
    for (int again = 0; again < 40; again++) {
        for (int i = 0; i < 64; i++) sum += (uintptr_t)(all[i] = malloc(20 + 30 * i)) >> 20;
        for (int i = 0; i < 64; i++) free(all[i]);
    }
    return sum;
}
NI uint64_t formatting(struct memory *m) {
    uint64_t sum = 0;
    for (int i = 0; i < 300; i++) sum += (uint64_t)snprintf(m->to, 200, "%d %f %s %p", i, i * 1.37, "word", (void *)m);
    return sum;
}
NI uint64_t reading(struct memory *m) {
    uint64_t sum = 0;
    for (int i = 0; i < 300; i++) sum += (uint64_t)read(zero, m->to, sizeof m->to);
    return sum;
}
NI uint64_t locking(struct memory *m) {
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&lock);
        locked++;
        pthread_mutex_unlock(&lock);
    }
    return (uint64_t)m->to[1];
}
NI void on_signal(int signal) { kit_sink += leaf_handler(20000) + (uint64_t)signal; }
NI uint64_t signalling(struct memory *m) {
    for (int i = 0; i < 20; i++) raise(SIGUSR1);
    return (uint64_t)m->to[2];
}

static uint64_t (*const works[KINDS])(struct memory *) = {sorting, copying, allocating, formatting, reading, locking, signalling};
static double cpu[2][KINDS];

NI double used(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
NI void work(unsigned which) {
    uint64_t lot = 88172645463325252ull + which, sum = 0;
    do {
        lot ^= lot << 13; lot ^= lot >> 7; lot ^= lot << 17;
        unsigned kind = (unsigned)((lot >> 32) % KINDS);
        double begun = used();
        sum += works[kind](&memories[which]);
        cpu[which][kind] += used() - begun;
    } while (kit_more());
    kit_sink += sum;
}
static void *thread(void *argument) {
    work(1);
    return argument;
}
int main(int argc, char **argv) {
    static const char *const names[] = {"sorting", "copying", "allocating", "formatting", "reading", "locking", "signalling"};
    double all[KINDS];
    pthread_t other;
    zero = open("/dev/zero", O_RDONLY);
    signal(SIGUSR1, on_signal);
    kit_begin(argc, argv);
    pthread_create(&other, 0, thread, 0);
    work(0);
    pthread_join(other, 0);
    for (int i = 0; i < KINDS; i++) all[i] = cpu[0][i] + cpu[1][i];
    kit_end(KINDS, names, all, 0);
    return 0;
}
