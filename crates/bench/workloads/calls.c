/* Native code without frame pointers: main, outer, middle, inner, and one of three leaves; and, for the share of the work
 * that the third argument says (in percent), a recursion as deep as the second one says, with a leaf of its own.
 *
 *   calls ROUNDS [DEPTH [SHARE]]
 *
 * All leaves run the same chain of dependent operations, so iterations are a measure of time.
 */
#include "bench.h"

#define ITERATIONS 12500

#define LEAF(name, constant)                                                                                           \
    NI uint64_t name(uint64_t x, unsigned n) {                                                                         \
        for (unsigned i = 0; i < n; i++) {                                                                             \
            x ^= x << 13;                                                                                              \
            x ^= x >> 7;                                                                                               \
            x ^= x << 17;                                                                                              \
            x += constant;                                                                                             \
        }                                                                                                              \
        return x;                                                                                                      \
    }

LEAF(leaf_large, 3)
LEAF(leaf_middle, 5)
LEAF(leaf_small, 7)
LEAF(leaf_deep, 11)

NI uint64_t descend(unsigned depth, uint64_t x, unsigned n) {
    if (depth == 0) return leaf_deep(x, n);
    uint64_t r = descend(depth - 1, x ^ depth, n);
    return (r << 1 | r >> 63) ^ (r * depth);
}
NI uint64_t inner(uint64_t x, unsigned n) {
    uint64_t a = leaf_large(x, n / 10 * 6);
    uint64_t b = leaf_middle(a ^ x, n / 10 * 3);
    uint64_t c = leaf_small(b ^ a, n / 10);
    return a ^ b ^ c;
}
NI uint64_t middle(uint64_t x, unsigned n) { return inner(x + 1, n) * 3 + x; }
NI uint64_t outer(uint64_t x, unsigned depth, unsigned shallow, unsigned deep) {
    uint64_t r = shallow ? middle(x ^ 0x5555, shallow) : x;
    return deep ? r + descend(depth, r, deep) * 7 : r + 7;
}
int main(int argc, char **argv) {
    unsigned long rounds = bench_argument(argc, argv, 1, 0);
    unsigned depth = bench_argument(argc, argv, 2, 60);
    unsigned deep = ITERATIONS / 100 * bench_argument(argc, argv, 3, 20);
    volatile uint64_t x = 88172645463325252ull;
    bench_begin();
    for (unsigned long i = 0; rounds == 0 || i < rounds; i++) x ^= outer(x + i, depth, ITERATIONS - deep, deep);
    bench_end();
    return 0;
}
