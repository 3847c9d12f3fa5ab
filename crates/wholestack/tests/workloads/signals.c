/* Work that is interrupted by an alarm, whose handler works too.
 *
 *   signals SECONDS plain|alternate|nested
 * What is interrupted: a function without a frame, functions that do little but push and pop, libc's hand-written
 * strlen, and system calls. `nested`: the alarm's handler is interrupted by another signal.
 */
#define _GNU_SOURCE
#include "kit.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

LEAF(leaf_main)
LEAF(leaf_handler)
LEAF(leaf_nested)
static char text[20001];
static int zero;
static volatile int ending, nested;
static double done[3]; /* iterations of leaf_main, leaf_handler, leaf_nested */

NI uint64_t pushes(unsigned depth, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    if (depth == 0) return a ^ b ^ c ^ d;
    uint64_t r = pushes(depth - 1, b, c, d, a + 1);
    return r + a * 3 + b * 5 + c * 7 + d * 11;
}
NI uint64_t handler_work(uint64_t n) { return leaf_handler(n) + 1; }

static void rearm(void) {
    struct itimerval next = {{0, 0}, {0, 1000 + kit_random(4000)}};
    if (!ending) setitimer(ITIMER_REAL, &next, 0);
}
static void on_nested(int signal) {
    kit_sink += leaf_nested(300000) + (uint64_t)signal;
    done[2] += 300000;
}
static void on_alarm(int signal) {
    kit_sink += handler_work(300000) + (uint64_t)signal;
    done[1] += 300000;
    if (nested) {
        raise(SIGUSR1);
        kit_sink += handler_work(100000);
        done[1] += 100000;
    }
    rearm();
}
NI uint64_t interrupted(unsigned which) {
    static char buffer[16384];
    uint64_t r = 0;
    switch (which) {
    case 0: r = leaf_main(20000); done[0] += 20000; break;
    case 1: for (unsigned i = 0; i < 100; i++) r += pushes(20, i, r, 3, 4); break;
    case 2: for (unsigned i = 0; i < 50; i++) r += strlen(text + (i & 7)); break;
    default: for (unsigned i = 0; i < 10; i++) r += (uint64_t)read(zero, buffer, sizeof buffer); break;
    }
    return r + 1;
}
int main(int argc, char **argv) {
    static const char *const names[] = {"leaf_main", "leaf_handler", "leaf_nested"};
    const char *mode = argc > 2 ? argv[2] : "plain";
    struct sigaction action = {.sa_flags = SA_RESTART};
    memset(text, 'x', sizeof text - 1);
    zero = open("/dev/zero", O_RDONLY);
    if (!strcmp(mode, "alternate")) {
        stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
        sigaltstack(&stack, 0);
        action.sa_flags |= SA_ONSTACK;
    }
    nested = !strcmp(mode, "nested");
    action.sa_handler = on_nested;
    sigaction(SIGUSR1, &action, 0);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, 0);
    kit_begin(argc, argv);
    rearm();
    while (kit_more()) kit_sink += interrupted(kit_random(4));
    ending = 1;
    kit_end(nested ? 3 : 2, names, done, 0);
    return 0;
}
