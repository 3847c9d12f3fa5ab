/* Nothing but calls and returns: most samples hit a prologue or an epilogue. Compiled with -O1, so that the recursion
 * is not unrolled into itself. */
#include "kit.h"

NI uint64_t fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

NI uint64_t many(unsigned depth, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    if (depth == 0) return a ^ b ^ c ^ d ^ e ^ f;
    uint64_t r = many(depth - 1, b, c, d, e, f, a + 1);
    return r + a * 3 + b * 5 + c * 7 + d * 11 + e * 13 + f * 17;
}
/* The stack pointer moves by an amount that only its frame pointer knows. */
NI uint64_t variable(unsigned depth) {
    volatile char space[1 + depth * 8];
    space[depth] = 1;
    return depth ? variable(depth - 1) + (uint64_t)space[depth] : 1;
}
NI uint64_t drive(unsigned which) {
    uint64_t r = which == 0 ? fibonacci(16) : which == 1 ? many(100, 1, 2, 3, 4, 5, 6) : variable(40);
    return r + 1;
}
int main(int argc, char **argv) {
    kit_begin(argc, argv);
    while (kit_more()) kit_sink += drive(kit_random(3));
    kit_end(0, 0, 0, 0);
    return 0;
}
