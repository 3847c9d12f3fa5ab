/* usage COMMAND ARGUMENTS...: runs a command with its output thrown away and says how much CPU time it and all below it
 * had. Its own code is that of the command. */
#include "kit.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    struct rusage used;
    char more[64];
    int status;
    setenv("GATE", "0", 1);
    kit_begin(argc, argv);
    pid_t pid = fork();
    if (pid == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, 1);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    getrusage(RUSAGE_CHILDREN, &used);
    double all = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    snprintf(more, sizeof more, ",\"children_s\":%.4f", all);
    kit_end(0, 0, 0, more);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
