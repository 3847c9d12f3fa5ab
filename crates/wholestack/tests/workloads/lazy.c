/* Calls through lazily bound PLT entries into a library of COUNT functions; with LD_BIND_NOT=1 each call goes through
 * the dynamic linker's resolver, as the first one does. */
#include "kit.h"

#define F1(n) uint64_t a_function_of_the_library_##n(uint64_t);
#define C1(n) sum += a_function_of_the_library_##n(sum);
#include "lazy_names.h"

NAMES(F1)
NI uint64_t call_all(uint64_t sum) {
    NAMES(C1)
    return sum;
}
NI uint64_t bound(uint64_t n) { return call_all(n) + 1; }

int main(int argc, char **argv) {
    kit_begin(argc, argv);
    while (kit_more()) kit_sink += bound(kit_sink);
    kit_end(0, 0, 0, 0);
    return 0;
}
