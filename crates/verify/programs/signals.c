/* Handlers on the same and on an alternate stack, nested, left by return and by siglongjmp, of signals that the program
 * raises, of faults, and (SIGUSR2) of those that the judge sends before each instruction. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;
static sigjmp_buf out;
static char other_stack[64 * 1024];

NOINLINE static void note(int signal) { sink += signal; }

static void plain(int signal) { note(signal); }

static void with_information(int signal, siginfo_t *information, void *context) {
    (void)context;
    note(signal + information->si_code);
}

static void nesting(int signal, siginfo_t *information, void *context) {
    (void)context;
    note(information->si_code);
    if (signal == SIGUSR1) raise(SIGWINCH);
}

static void leave(int signal, siginfo_t *information, void *context) {
    (void)information;
    (void)context;
    note(signal);
    siglongjmp(out, signal);
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(signal, &action, NULL);
}

NOINLINE static long fault(volatile long *place) { return *place + 1; }

NOINLINE static long undefined(long a) {
    __asm__ volatile("ud2");
    return a + 1;
}

NOINLINE static long work(long n) {
    volatile long local[4] = { n, n + 1, n + 2, n + 3 };
    return n <= 0 ? local[1] : work(n - 1) + local[n & 3];
}

/* No frame and no stack: the handler interrupts a leaf at its entry. */
NOINLINE static long bare(long n) { return n * 5 + 2; }

NOINLINE static long raise_from(long depth) {
    if (depth > 0) return raise_from(depth - 1) + 1;
    raise(SIGUSR1);
    return 0;
}

static void several(int flags) {
    handle(SIGUSR1, nesting, flags | SA_NODEFER);
    handle(SIGWINCH, with_information, flags);
    signal(SIGHUP, plain);
    sink = raise_from(3);
    raise(SIGHUP);
#ifdef __GLIBC__
    /* sigsetjmp of musl takes its return address off the stack, which the judge cannot follow through a jump back. */
    handle(SIGILL, leave, flags);
    if (sigsetjmp(out, 1) == 0) sink = undefined(3);
    handle(SIGSEGV, leave, flags | SA_NODEFER);
    for (int i = 0; i < 2; i++)
        if (sigsetjmp(out, 1) == 0) sink = fault(NULL);
    handle(SIGFPE, leave, flags);
    if (sigsetjmp(out, 1) == 0) sink = 5 / (sink - sink);
#endif
}

static void timer(void) {
    struct itimerval soon = { { 0, 0 }, { 0, 2000 } };
    sigset_t alarm, before;
    handle(SIGALRM, with_information, SA_RESTART);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    sigsuspend(&before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

int main(void) {
    stack_t other = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
    sigaltstack(&other, NULL);
    several(0);
    several(SA_ONSTACK);
    timer();
    handle(SIGUSR2, with_information, SA_NODEFER | SA_ONSTACK);
    sink = work(4) + bare(2);
    several(0);
    handle(SIGUSR2, with_information, SA_NODEFER);
    free(malloc(100));
    sink = strtol("123", NULL, 10) + (long)strlen("some text") + getpid();
    several(SA_ONSTACK);
    signal(SIGUSR2, SIG_IGN);
    return 0;
}
