/* deluge SECONDS: ever new deep stacks: up to 300 calls through twenty functions, each drawn by lot, and some work at the
 * end of each chain. */
#include "kit.h"

typedef uint64_t function(unsigned depth, uint64_t n);
static function *const functions[20];
LEAF(leaf)

NI uint64_t deeper(unsigned depth, uint64_t n) {
    return depth == 0 ? leaf(n) : functions[kit_random(20)](depth - 1, n) + depth;
}
/* The frames differ in size, so that a wrong rule leads astray. */
#define DEEP(number)                                                                                                   \
    NI static uint64_t deep_##number(unsigned depth, uint64_t n) {                                                     \
        volatile char space[16 * number + 1];                                                                          \
        space[depth % sizeof space] = (char)n;                                                                         \
        uint64_t sum = depth == 0 ? leaf(n) : functions[kit_random(20)](depth - 1, n) + depth;                         \
        return sum + (uint64_t)space[depth % sizeof space];                                                            \
    }
DEEP(0) DEEP(1) DEEP(2) DEEP(3) DEEP(4) DEEP(5) DEEP(6) DEEP(7) DEEP(8) DEEP(9)
DEEP(10) DEEP(11) DEEP(12) DEEP(13) DEEP(14) DEEP(15) DEEP(16) DEEP(17) DEEP(18) DEEP(19)
static function *const functions[20] = {deep_0,  deep_1,  deep_2,  deep_3,  deep_4,  deep_5,  deep_6,
                                        deep_7,  deep_8,  deep_9,  deep_10, deep_11, deep_12, deep_13,
                                        deep_14, deep_15, deep_16, deep_17, deep_18, deep_19};

int main(int argc, char **argv) {
    kit_begin(argc, argv);
    while (kit_more()) kit_sink += deeper(kit_random(299), 20000);
    kit_end(0, 0, 0, 0);
    return 0;
}
