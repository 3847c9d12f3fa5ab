// Programs to be looked at. The first argument says which; each prints lines of words that the tests read.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 256

static _Atomic uint64_t counters[MOST];
static pthread_barrier_t barrier;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;
static int silent[2];

static void sleep_us(long us) {
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {}
}

static void introduce(void) {
    printf("thread %d %lx\n", (int)syscall(SYS_gettid), (unsigned long)pthread_self());
    fflush(stdout);
}

// Busy, or blocked in one of the ways in which threads are. Those that must count on do so now and then.
static void *work(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    introduce();
    pthread_barrier_wait(&barrier);
    char byte;
    for (;; counters[number]++) {
        switch (number % 5) {
        case 0: break;
        case 1: sleep_us(3000); break;
        case 2: sched_yield(); break;
        case 3: if (read(silent[0], &byte, 1) != 1) { printf("read failed: %d\n", errno); exit(1); } break;
        case 4: pthread_mutex_lock(&never); break;
        }
    }
    return NULL;
}

// Answers lines from the input until it ends: `count` with all counters.
static int answer(int threads) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        printf("counters");
        for (int i = 0; i < threads; i++) printf(" %lu", (unsigned long)counters[i]);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}

static int threads(int count) {
    if (pipe(silent)) return 1;
    pthread_mutex_lock(&never);
    pthread_barrier_init(&barrier, NULL, count + 1);
    introduce();
    for (uintptr_t i = 0; i < (uintptr_t)count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)i)) return 1;
    }
    pthread_barrier_wait(&barrier);
    printf("ready %lx\n", (unsigned long)counters);
    fflush(stdout);
    return answer(count);
}

// Threads that end as soon as they have begun.
static void *brief(void *argument) { return argument; }

static void *churner(void *argument) {
    for (;;) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, brief, counters) || pthread_join(thread, &result) || result != counters) {
            printf("a thread was lost\n");
            exit(1);
        }
        counters[(uintptr_t)argument]++;
    }
}

static int churn(void) {
    for (uintptr_t i = 0; i < 4; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, churner, (void *)i)) return 1;
    }
    printf("ready\n");
    fflush(stdout);
    return answer(4);
}

// Ticks of a timer, whose overruns the kernel counts: delivered ones and overruns together are all.
static volatile uint64_t ticks, delivered;
static void on_tick(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    delivered++;
    ticks += 1 + info->si_overrun;
}

// Numbers that arrive by sigqueue(3), each exactly once and in order.
static volatile int64_t next_number, wrong_numbers;
static void on_number(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    if (info->si_value.sival_int != next_number) wrong_numbers++;
    next_number = info->si_value.sival_int + 1;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static int signals(void) {
    struct sigaction tick = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction number = {.sa_sigaction = on_number, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &tick, NULL);
    sigaction(SIGRTMIN + 1, &number, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return 1;
    struct itimerspec every = {{0, 1000000}, {0, 1000000}}, none = {0};
    uint64_t begin = now_ns();
    timer_settime(timer, 0, &every, NULL);
    printf("thread %d %lx\nready\n", (int)syscall(SYS_gettid), (unsigned long)pthread_self());
    fflush(stdout);
    char line[64];
    if (!fgets(line, sizeof line, stdin)) return 1;
    timer_settime(timer, 0, &none, NULL);
    uint64_t expected = (now_ns() - begin) / 1000000;
    sleep_us(10000);
    printf("ticks %lu expected %lu delivered %lu numbers %ld wrong %ld\n", (unsigned long)ticks, (unsigned long)expected,
           (unsigned long)delivered, (long)next_number, (long)wrong_numbers);
    return 0;
}

// The parent of a vfork is in uninterruptible sleep until the child ends: when its input does.
static int vforked(void) {
    introduce();
    pid_t child = vfork();
    if (child == 0) {
        char byte;
        printf("ready\n");
        fflush(stdout);
        while (read(0, &byte, 1) > 0) {}
        _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    return 0;
}

// Traces another thread until its input ends.
static int trace(int tid) {
    if (ptrace(PTRACE_SEIZE, tid, 0, 0)) return 1;
    printf("ready\n");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {}
    return 0;
}

// Runs itself again and again.
static int run_again(char **arguments, int times) {
    if (times == 0) printf("ready\n");
    fflush(stdout);
    char number[16];
    snprintf(number, sizeof number, "%d", times + 1);
    char *next[] = {arguments[0], arguments[1], number, NULL};
    execv("/proc/self/exe", next);
    return 1;
}

// Runs another program as soon as its input has a line.
static int run_other(void) {
    static const char text[] = "these words are in the program's memory";
    printf("ready %lx %zu\n", (unsigned long)text, sizeof text - 1);
    fflush(stdout);
    char line[64];
    if (!fgets(line, sizeof line, stdin)) return 1;
    execlp("cat", "cat", NULL);
    return 1;
}

// Says which calls an interruption has ended.
static int interrupted(void) {
    struct epoll_event event;
    int poller = epoll_create1(0);
    introduce();
    printf("ready\n");
    fflush(stdout);
    int result = epoll_wait(poller, &event, 1, 3000);
    printf("epoll_wait %d %d\n", result, result == -1 ? errno : 0);
    return 0;
}

#ifdef __x86_64__
// Runs in the 32-bit code segment: a jump to itself.
static int narrow(void) {
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (code == MAP_FAILED) return 1;
    memcpy(code, "\xeb\xfe", 2);
    printf("ready\n");
    fflush(stdout);
    __asm__ volatile("pushq $0x23; pushq %0; lretq" : : "r"((uint64_t)code) : "memory");
    return 0;
}
#else
static int narrow(void) { return 1; }
#endif

int main(int count, char **arguments) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *what = count > 1 ? arguments[1] : "";
    int number = count > 2 ? atoi(arguments[2]) : 0;
    if (!strcmp(what, "threads")) return threads(number);
    if (!strcmp(what, "churn")) return churn();
    if (!strcmp(what, "signals")) return signals();
    if (!strcmp(what, "vfork")) return vforked();
    if (!strcmp(what, "trace")) return trace(number);
    if (!strcmp(what, "again")) return run_again(arguments, number);
    if (!strcmp(what, "other")) return run_other();
    if (!strcmp(what, "epoll")) return interrupted();
    if (!strcmp(what, "narrow")) return narrow();
    return 2;
}
