/* Short processes: storm COUNT RATE PROGRAM starts COUNT of them, RATE a second, and says how much CPU time they had. */
#include "kit.h"
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec * 1e-6; }

int main(int argc, char **argv) {
    unsigned count = argc > 3 ? (unsigned)atoi(argv[1]) : 0, rate = argc > 3 ? (unsigned)atoi(argv[2]) : 1;
    struct rusage used;
    char more[128];
    kit_begin(argc, argv);
    double begun = now();
    for (unsigned i = 0; i < count; i++) {
        // somewhat late, each time by chance: processes that begin in step with the ticks have all their ticks at the same places
        double late = kit_random(1000) / 1000.0;
        double wait = begun + (i + late) / rate - now();
        if (wait > 0) usleep((useconds_t)(wait * 1e6));
        pid_t pid = fork();
        if (pid == 0) {
            execl(argv[3], argv[3], (char *)0);
            _exit(127);
        }
        while (waitpid(-1, 0, WNOHANG) > 0) {}
    }
    while (wait(0) > 0 || errno == EINTR) {}
    double took = now() - begun;
    getrusage(RUSAGE_CHILDREN, &used);
    snprintf(more, sizeof more, ",\"user_s\":%.4f,\"system_s\":%.4f,\"rate\":%.1f", seconds(used.ru_utime),
             seconds(used.ru_stime), count / took);
    kit_end(0, 0, 0, more);
    return 0;
}
