// Maps files executable, whatever they hold. Arguments: FILE OFFSET, as often as wanted; with an offset that is not 0, a
// thread jumps there. Goes on when it reads a line; then truncates the files that are named with a leading '-', and lets
// one with a leading '~' shrink and grow for ever.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *jump(void *to) {
    ((void (*)(void))to)();
    return 0;
}

static volatile unsigned long rounds;

static void *shrink_and_grow(void *path) {
    struct stat status;
    if (stat(path, &status) != 0) return 0;
    for (;;) {
        if (truncate(path, 4096) != 0 || usleep(300) != 0) return 0;
        if (truncate(path, status.st_size) != 0 || usleep(300) != 0) return 0;
    }
}

int main(int count, char **arguments) {
    for (int at = 1; at + 1 < count; at += 2) {
        const char *path = arguments[at] + (arguments[at][0] == '-' || arguments[at][0] == '~');
        int file = open(path, O_RDONLY);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0) return perror(path), 1;
        size_t size = status.st_size ? status.st_size : 4096;
        char *base = mmap(0, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        if (base == MAP_FAILED) return perror(path), 1;
        close(file);
        unsigned long offset = strtoul(arguments[at + 1], 0, 16);
        pthread_t thread;
        if (offset) pthread_create(&thread, 0, jump, base + offset);
    }
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF) return 1;
    for (int at = 1; at + 1 < count; at += 2)
        if (arguments[at][0] == '-' && truncate(arguments[at] + 1, 0) != 0) return perror("truncate"), 1;
    pthread_t changer;
    for (int at = 1; at + 1 < count; at += 2)
        if (arguments[at][0] == '~') pthread_create(&changer, 0, shrink_and_grow, arguments[at] + 1);
    puts("cut");
    fflush(stdout);
    for (;;) rounds = rounds + 1;
}
