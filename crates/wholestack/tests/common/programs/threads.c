// Has a second thread. Says its id.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *second(void *nothing) {
    printf("%ld\n", syscall(SYS_gettid));
    fflush(stdout);
    for (;;) pause();
    return nothing;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, second, 0);
    for (;;) pause();
}
