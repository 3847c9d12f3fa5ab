/* Time in the kernel: reading zeros, page faults, a cheap system call, and some work of its own. The truth is the
 * thread's CPU time around each. */
#define _GNU_SOURCE
#include "kit.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static int zero;
static char buffer[1 << 16];
LEAF(leaf_user)

NI uint64_t reads(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 20; i++) sum += (uint64_t)read(zero, buffer, sizeof buffer);
    return sum;
}
NI uint64_t touches(char *memory, size_t size) {
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += 4096) sum += (uint64_t)++memory[at];
    return sum;
}
NI uint64_t faults(void) {
    size_t size = 200 * 4096;
    char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, size, MADV_NOHUGEPAGE);
    uint64_t sum = touches(memory, size);
    munmap(memory, size);
    return sum;
}
NI uint64_t calls(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 500; i++) sum += (uint64_t)syscall(SYS_getppid);
    return sum;
}
NI uint64_t user(void) { return leaf_user(20000) + 1; }

int main(int argc, char **argv) {
    static const char *const names[] = {"reads", "faults", "calls", "user"};
    static uint64_t (*const all[])(void) = {reads, faults, calls, user};
    double done[4] = {0};
    zero = open("/dev/zero", O_RDONLY);
    kit_begin(argc, argv);
    while (kit_more()) {
        unsigned which = kit_random(4);
        double begun = kit_cpu();
        kit_sink += all[which]();
        done[which] += kit_cpu() - begun;
    }
    kit_end(4, names, done, 0);
    return 0;
}
