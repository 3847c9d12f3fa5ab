/* A parent, a child without exec, and its child; each works in a function of its own. The truth is their CPU time. */
#include "kit.h"
#include <sys/wait.h>

LEAF(leaf_parent)
LEAF(leaf_child)
LEAF(leaf_grandchild)

NI double work(uint64_t (*leaf)(uint64_t), double seconds) {
    double begun = kit_cpu(), now;
    do kit_sink += leaf(20000); while ((now = kit_cpu()) - begun < seconds);
    return now;
}
static double child_time(int from, pid_t pid) {
    double time = 0;
    if (read(from, &time, sizeof time) != sizeof time) exit(2);
    waitpid(pid, 0, 0);
    return time;
}
NI double in_grandchild(int to) {
    double time = work(leaf_grandchild, kit_budget * 0.2);
    return write(to, &time, sizeof time) == sizeof time ? time : 0;
}
NI double in_child(int to) {
    int pipes[2];
    if (pipe(pipes)) exit(2);
    pid_t pid = fork();
    if (pid == 0) {
        in_grandchild(pipes[1]);
        _exit(0);
    }
    double times[2];
    times[0] = work(leaf_child, kit_budget * 0.3);
    times[1] = child_time(pipes[0], pid);
    if (write(to, &times[0], 8) != 8 || write(to, &times[1], 8) != 8) exit(2);
    return times[0];
}
int main(int argc, char **argv) {
    static const char *const names[] = {"leaf_parent", "leaf_child", "leaf_grandchild"};
    double done[3];
    int pipes[2];
    char more[64];
    kit_begin(argc, argv);
    if (pipe(pipes)) return 2;
    pid_t pid = fork();
    if (pid == 0) {
        in_child(pipes[1]);
        _exit(0);
    }
    work(leaf_parent, kit_budget * 0.5);
    done[0] = kit_cpu() - kit_begun;
    done[1] = child_time(pipes[0], pid);
    if (read(pipes[0], &done[2], 8) != 8) return 2;
    snprintf(more, sizeof more, ",\"all_s\":%.6f", done[0] + done[1] + done[2]);
    kit_end(3, names, done, more);
    return 0;
}
