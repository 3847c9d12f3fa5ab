/* A storm of short processes: gale SECONDS RATE PROGRAM... starts RATE processes a second, each time one of the programs,
 * drawn by lot, and at most 64 at a time. When they start and how long they work is drawn by lot, too: at regular times they
 * would run in step with the ticks of the sampler. Says how much CPU time those of each program had, from fork to exit. */
#define _GNU_SOURCE
#include "kit.h"
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MOST 64
static struct {
    pid_t pid;
    int program;
} running[MOST];
static unsigned count, alive;
static double cpu[16];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec * 1e-6; }

/* Takes note of one that has ended; 0 if none has. */
static int reap(int options) {
    struct rusage used;
    int status;
    pid_t pid = wait4(-1, &status, options, &used);
    if (pid <= 0) return 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) exit(4);
    for (int i = 0; i < MOST; i++)
        if (running[i].pid == pid) {
            cpu[running[i].program] += seconds(used.ru_utime) + seconds(used.ru_stime);
            running[i].pid = 0;
            alive--;
        }
    return 1;
}
static void start(char *const *programs, int program) {
    char unit[16];
    int slot = 0;
    while (running[slot].pid) slot++;
    snprintf(unit, sizeof unit, "%u", 60000 + (unsigned)kit_random(40001));
    pid_t pid = fork();
    if (pid == 0) {
        execl(programs[program], programs[program], unit, (char *)0);
        _exit(127);
    }
    if (pid < 0) exit(5);
    running[slot].pid = pid;
    running[slot].program = program;
    count++, alive++;
}
int main(int argc, char **argv) {
    int programs = argc - 3;
    const char *names[16];
    char more[128];
    if (programs < 1 || programs > 16) return 2;
    kit_begin(argc, argv);
    double rate = atof(argv[2]), begun = now(), next = 0, spent;
    while ((spent = now() - begun) < kit_budget) {
        double wait = next - spent;
        next += kit_random(2001) / 1000.0 / rate;
        if (wait > 0) usleep((useconds_t)(wait * 1e6));
        while (reap(alive == MOST ? 0 : WNOHANG)) {}
        start(argv + 3, (int)kit_random((unsigned)programs));
    }
    while (reap(0) || errno == EINTR) {}
    double took = now() - begun, all = 0;
    for (int i = 0; i < programs; i++) {
        const char *slash = strrchr(argv[3 + i], '/');
        names[i] = slash ? slash + 1 : argv[3 + i];
        all += cpu[i];
    }
    snprintf(more, sizeof more, ",\"children_s\":%.4f,\"count\":%u,\"rate\":%.1f", all, count, count / took);
    kit_end(programs, names, cpu, more);
    return 0;
}
