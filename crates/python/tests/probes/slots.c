// Measures where the C library keeps the values of pthread keys, by looking for values that were stored with
// pthread_setspecific(3) in the memory around the thread pointer, and behind the pointers that lie there. Knows no layout.
//
// Prints a line for each way to a value: `value THREAD KEY inline OFFSET` (bytes from the thread pointer), or
// `value THREAD KEY behind OFFSET OFFSET` (bytes from the thread pointer to a pointer, and from there). There are several
// ways, since pointers lead close to each other; a layout is right if it takes one of them for every key, and with three
// neighbouring keys among them the size of an entry is proven.
// `thread THREAD TID POINTER` is a thread's thread pointer. Then `library PATH`, the file in which pthread_getspecific lies, and `keys N`, how many keys there can be.
// With an argument it then waits until its input ends, with all values in place.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The thread pointer lies within 2 KB of all that matters on both architectures; further out lie stacks, where copies
// of the values may be found.
#define REACH 2304
#define BEHIND 4096
#define MOST 2000

static pthread_key_t keys[MOST];
static int count;
static int tunnel[2];
static pthread_barrier_t measured;

// Reads memory that may not be there, page by page: the kernel says so when it is to be written into a pipe.
static size_t peek(uintptr_t address, void *into, size_t size) {
    size_t done = 0;
    while (done < size && address >= 4096 && !(address >> 47)) {
        size_t rest = 4096 - address % 4096, part = size - done < rest ? size - done : rest;
        if (write(tunnel[1], (const void *)address, part) != (ssize_t)part) break;
        if (read(tunnel[0], (char *)into + done, part) != (ssize_t)part) break;
        address += part, done += part;
    }
    return done;
}

// A value that is nowhere in memory but in its slot.
static uint64_t value_of(int thread, pthread_key_t key) {
    return (uint64_t)key * 0x9e3779b97f4a7c15u ^ (uint64_t)(thread + 1) * 0xc2b2ae3d27d4eb4fu;
}

static void look_for(int thread, pthread_key_t key) {
    static uint64_t words[BEHIND / 8];
    uint64_t value = value_of(thread, key);
    uintptr_t pointer = (uintptr_t)__builtin_thread_pointer();
    for (intptr_t at = -REACH; at < REACH; at += 8) {
        uint64_t word;
        if (peek(pointer + at, &word, 8) == 8 && word == value) printf("value %d %u inline %ld\n", thread, key, (long)at);
    }
    for (intptr_t at = -REACH; at < REACH; at += 8) {
        uint64_t word;
        if (peek(pointer + at, &word, 8) != 8 || word % 8) continue;
        size_t size = peek(word, words, BEHIND);
        for (size_t i = 0; i < size / 8; i++)
            if (words[i] == value) printf("value %d %u behind %ld %zu\n", thread, key, (long)at, i * 8);
    }
}

static int is_looked_for(int i) {
    static const int some[] = {0, 1, 2, 30, 31, 32, 33, 63, 64, 65, 126, 127, 128, 500, 991, 992, 1022, 1023};
    for (size_t j = 0; j < sizeof some / sizeof *some; j++)
        if (some[j] == i) return 1;
    return 0;
}

static void *measure(void *argument) {
    int thread = (int)(intptr_t)argument;
    for (int i = 0; i < count; i++)
        if (is_looked_for(i)) pthread_setspecific(keys[i], (void *)(uintptr_t)value_of(thread, keys[i]));
    for (int i = 0; i < count; i++)
        if (is_looked_for(i)) look_for(thread, keys[i]);
    printf("thread %d %ld %lx\n", thread, (long)syscall(SYS_gettid), (unsigned long)__builtin_thread_pointer());
    fflush(stdout);
    return NULL;
}

static void *measure_and_wait(void *argument) {
    measure(argument);
    pthread_barrier_wait(&measured);
    for (;;) pause();
    return NULL;
}

// The file that is mapped where the function is.
static void library(void) {
    uintptr_t function = (uintptr_t)pthread_getspecific;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], path[4096];
    unsigned long begin, end;
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &begin, &end, path) == 3 && begin <= function &&
            function < end)
            printf("library %s\n", path);
}

int main(int arguments, char **argument) {
    (void)argument;
    if (pipe(tunnel) || pthread_barrier_init(&measured, NULL, 2)) return 1;
    while (count < MOST && pthread_key_create(&keys[count], NULL) == 0) count++;
    measure((void *)0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, arguments > 1 ? measure_and_wait : measure, (void *)1)) return 1;
    if (arguments > 1) pthread_barrier_wait(&measured);
    else pthread_join(thread, NULL);
    library();
    printf("keys %d\n", count);
    fflush(stdout);
    char byte;
    while (arguments > 1 && read(0, &byte, 1) > 0) {}
    return 0;
}
