// Exceptions thrown through four frames and caught, in a loop, with work before the throw and in the handler.
#include "kit.h"
#include <stdexcept>
#include <string>

LEAF(leaf_before)
LEAF(leaf_caught)

struct Guard {
    std::string text = "a destructor that runs while the stack is unwound";
    NI ~Guard() { kit_sink = kit_sink + text.size(); }
};
NI void thrower(uint64_t n) {
    Guard guard;
    kit_sink = kit_sink + leaf_before(n);
    throw std::runtime_error("thrown");
}
NI void third(uint64_t n) {
    Guard guard;
    thrower(n);
}
NI void second(uint64_t n) {
    Guard guard;
    third(n);
}
NI void first(uint64_t n) {
    try {
        second(n);
    } catch (const std::exception &error) {
        kit_sink = kit_sink + leaf_caught(n / 2) + *error.what();
    }
}
int main(int argc, char **argv) {
    static const char *const names[] = {"leaf_before", "leaf_caught"};
    double done[2] = {0, 0};
    kit_begin(argc, argv);
    while (kit_more()) {
        first(1000);
        done[0] += 1000;
        done[1] += 500;
    }
    kit_end(2, names, done, nullptr);
}
