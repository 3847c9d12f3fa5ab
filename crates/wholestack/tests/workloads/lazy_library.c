/* The library of lazy.c. */
#include <stdint.h>

#define D1(n) uint64_t a_function_of_the_library_##n(uint64_t x) { return x * 3 + sizeof #n; }
#include "lazy_names.h"
NAMES(D1)
