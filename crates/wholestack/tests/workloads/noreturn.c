/* Functions whose last instruction is a call that does not return. The return address that it pushes is the first
 * byte of the next function (compiled with -falign-functions=1). */
#include "kit.h"
#include <setjmp.h>

static jmp_buf back;
LEAF(leaf_thrown)
LEAF(leaf_other)

NI __attribute__((noreturn)) void never_returns(uint64_t n) {
    kit_sink += leaf_thrown(n);
    longjmp(back, 1);
}
NI void last_call(uint64_t n) {
    volatile char space[200];
    space[n & 127] = 1;
    kit_sink += (uint64_t)space[n & 127];
    never_returns(n);
}
/* Directly behind `last_call`, with another frame size. */
NI uint64_t neighbour(uint64_t n) { return leaf_other(n) + 3; }

NI void try(uint64_t n) {
    if (!setjmp(back)) last_call(n);
}
int main(int argc, char **argv) {
    static const char *const names[] = {"leaf_thrown", "leaf_other"};
    double done[2] = {0};
    kit_begin(argc, argv);
    while (kit_more()) {
        if (kit_random(3)) {
            try(20000);
            done[0] += 20000;
        } else {
            kit_sink += neighbour(20000);
            done[1] += 20000;
        }
    }
    kit_end(2, names, done, 0);
    return 0;
}
