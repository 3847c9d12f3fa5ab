/* A library for host.c: COLOUR names its functions, SPACE is the size of their frames, so that the rules of one are
 * wrong for the other at the same place. */
#include "kit.h"

#define NAME2(colour, part) colour##_##part
#define NAME1(colour, part) NAME2(colour, part)
#define NAME(part) NAME1(COLOUR, part)

static LEAF(NAME(leaf))
static NI uint64_t NAME(inner)(uint64_t n) {
    volatile char space[SPACE];
    space[n % SPACE] = 1;
    return NAME(leaf)(n) + (uint64_t)space[n % SPACE];
}
static NI uint64_t NAME(outer)(uint64_t n) {
    volatile char space[2 * SPACE];
    space[n % SPACE] = 1;
    return NAME(inner)(n) + (uint64_t)space[n % SPACE];
}
uint64_t entry(uint64_t n) { return NAME(outer)(n) + 1; }
