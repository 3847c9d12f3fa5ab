/* Frames of unusual form: alloca, larger than 32 KiB, larger than 64 KiB, of megabytes, a realigned stack, both. */
#include "kit.h"
#include <alloca.h>

static void touch(volatile char *memory, uint64_t size) {
    memory[0] = 1;
    memory[size - 1] = 2;
    kit_sink += (uint64_t)memory[0];
}
LEAF(leaf_alloca)
LEAF(leaf_large)
LEAF(leaf_larger)
LEAF(leaf_huge)
LEAF(leaf_aligned)
LEAF(leaf_vector)
LEAF(leaf_both)

NI uint64_t with_alloca(uint64_t n) {
    uint64_t size = 16 + kit_random(5000);
    touch(alloca(size), size);
    return leaf_alloca(n) + size;
}
NI uint64_t with_large(uint64_t n) {
    volatile char space[33000];
    touch(space, sizeof space);
    return leaf_large(n) + (uint64_t)space[5];
}
NI uint64_t with_larger(uint64_t n) {
    volatile char space[70000];
    touch(space, sizeof space);
    return leaf_larger(n) + (uint64_t)space[5];
}
NI uint64_t with_huge(uint64_t n) {
    volatile char space[3 << 20];
    touch(space, sizeof space);
    return leaf_huge(n) + (uint64_t)space[5];
}
NI uint64_t with_aligned(uint64_t n) {
    _Alignas(64) volatile char space[100];
    touch(space, sizeof space);
    return leaf_aligned(n) + (uint64_t)space[5];
}
#ifdef __x86_64__
typedef double wide __attribute__((vector_size(32)));
__attribute__((target("avx"))) NI uint64_t vector_frame(uint64_t n) {
    volatile wide v = {1, 2, 3, (double)n};
    uint64_t r = leaf_vector(n);
    return r + (uint64_t)v[3];
}
NI uint64_t with_vector(uint64_t n) { return __builtin_cpu_supports("avx") ? vector_frame(n) + 1 : leaf_vector(n); }
#else
NI uint64_t with_vector(uint64_t n) { return leaf_vector(n) + 1; }
#endif
NI uint64_t with_both(uint64_t n) {
    _Alignas(128) volatile char space[100];
    uint64_t size = 16 + kit_random(5000);
    touch(space, sizeof space);
    touch(alloca(size), size);
    return leaf_both(n) + (uint64_t)space[5];
}
NI uint64_t below(unsigned which, uint64_t n) {
    static uint64_t (*const all[])(uint64_t) = {with_alloca,  with_large,  with_larger, with_huge,
                                                with_aligned, with_vector, with_both};
    return all[which](n) ^ which;
}
int main(int argc, char **argv) {
    static const char *const names[] = {"leaf_alloca",  "leaf_large",  "leaf_larger", "leaf_huge",
                                        "leaf_aligned", "leaf_vector", "leaf_both"};
    double done[7] = {0};
    kit_begin(argc, argv);
    while (kit_more()) {
        unsigned which = kit_random(7);
        kit_sink += below(which, 20000);
        done[which] += 20000;
    }
    kit_end(7, names, done, 0);
    return 0;
}
