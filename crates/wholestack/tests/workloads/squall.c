/* One short process of a storm: about two milliseconds of work, of which 60, 30 and 10 % are in three leaves below a
 * function with a frame of SPACE bytes. All names begin with NAME, so that no program can be taken for another. */
#include "kit.h"

#define JOIN2(name, part) name##_##part
#define JOIN1(name, part) JOIN2(name, part)
#define OWN(part) JOIN1(NAME, part)

LEAF(OWN(sixty))
LEAF(OWN(thirty))
LEAF(OWN(ten))

NI uint64_t OWN(work)(uint64_t unit) {
    volatile char space[SPACE];
    space[unit % SPACE] = 1;
    uint64_t sum = OWN(sixty)(6 * unit) ^ OWN(thirty)(3 * unit) ^ OWN(ten)(unit);
    return sum + (uint64_t)space[unit % SPACE];
}
int main(int argc, char **argv) {
    uint64_t unit = 0;
    // by hand: no function but its own is called from here
    for (const char *digit = argc > 1 ? argv[1] : "80000"; *digit; digit++) unit = 10 * unit + (uint64_t)(*digit - '0');
    return (int)(OWN(work)(unit) >> 63);
}
