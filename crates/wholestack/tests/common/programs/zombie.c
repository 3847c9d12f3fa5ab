// Has a child that ended and is not waited for. Its name would act on a terminal. Says its id.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    prctl(PR_SET_NAME, "\033[31mred\n\r");
    pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t information;
    // waits for its end and leaves it a zombie
    waitid(P_PID, child, &information, WEXITED | WNOWAIT);
    printf("%d\n", child);
    fflush(stdout);
    for (;;) pause();
}
