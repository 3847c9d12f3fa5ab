/* Children by vfork, which runs on its parent's stack without its return address, and by posix_spawn. */
#define _GNU_SOURCE
#include "kit.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

NI pid_t by_vfork(void) {
    pid_t pid = vfork();
    if (pid == 0) _exit(0);
    return pid;
}
NI pid_t by_spawn(void) {
    char *command[] = {(char *)"true", 0};
    pid_t pid = -1;
    if (posix_spawn(&pid, "/bin/true", 0, 0, command, environ)) exit(2);
    return pid;
}
NI void child(unsigned which) {
    pid_t pid = which ? by_vfork() : by_spawn();
    waitpid(pid, 0, 0);
}
int main(int argc, char **argv) {
    kit_begin(argc, argv);
    while (kit_more()) child(kit_random(10));
    kit_end(0, 0, 0, 0);
    return 0;
}
