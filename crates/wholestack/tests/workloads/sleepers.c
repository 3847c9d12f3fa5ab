/* sleepers COUNT: starts so many children that do nothing, says so, and ends them when it ends. */
#include "kit.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0, started = 0;
    pid_t parent = getpid();
    char more[64];
    /* a group of their own, to end them all at once and nobody else */
    if (setpgid(0, 0)) return 5;
    while (started < count) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(0);
            close(0);
            close(1);
            for (;;) pause();
        }
        started++;
    }
    kit_begin(0, argv);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(0) > 0 || errno == EINTR) {}
    snprintf(more, sizeof more, ",\"started\":%u", started);
    kit_end(0, 0, 0, more);
    return 0;
}
