/* Three leaves below three callers, and a fourth below a recursion of DEPTH + 1 calls. */
#include "kit.h"

#ifndef DEPTH
#define DEPTH 60
#endif
/* A round is long against the recursion's own calls and returns. */
#define UNIT (1000 + 10ul * DEPTH)

LEAF(leaf60)
LEAF(leaf30)
LEAF(leaf10)
LEAF(leaf_deep)

NI uint64_t recursion(unsigned depth, uint64_t n) {
    if (depth == 0) return leaf_deep(n);
    uint64_t r = recursion(depth - 1, n);
    return (r << 1 | r >> 63) ^ (r * depth);
}
NI uint64_t inner(unsigned which, uint64_t n) {
    uint64_t r = which == 0 ? leaf60(n) : which == 1 ? leaf30(n) : leaf10(n);
    return r ^ n;
}
NI uint64_t middle(unsigned which, uint64_t n) { return inner(which, n) * 3 + which; }
NI uint64_t outer(unsigned which, uint64_t n) {
    uint64_t r = which < 3 ? middle(which, n) : recursion(DEPTH, n);
    return r + which;
}
int main(int argc, char **argv) {
    static const char *const names[] = {"leaf60", "leaf30", "leaf10", "leaf_deep"};
    static const unsigned weights[] = {6, 3, 1, 5};
    double done[4] = {0};
    kit_begin(argc, argv);
    while (kit_more()) {
        unsigned which = kit_random(4);
        uint64_t n = weights[which] * UNIT;
        kit_sink += outer(which, n);
        done[which] += n;
    }
    kit_end(4, names, done, 0);
    return 0;
}
