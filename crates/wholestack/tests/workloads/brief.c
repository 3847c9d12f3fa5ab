/* About two milliseconds of work, of which 60, 30 and 10 % are in three leaves. */
#include "kit.h"

LEAF(brief60)
LEAF(brief30)
LEAF(brief10)

NI uint64_t brief_work(uint64_t unit) { return brief60(6 * unit) ^ brief30(3 * unit) ^ brief10(unit); }

int main(int argc, char **argv) {
    uint64_t unit = argc > 1 ? strtoull(argv[1], 0, 0) : 80000;
    return (int)(brief_work(unit) >> 63);
}
