// The shared library of virtual.cpp.
#include "shapes.h"
#include "kit.h"

LEAF(leaf_circle)
LEAF(leaf_square)
LEAF(leaf_pentagon)

struct Circle : Shape {
    NI uint64_t area(uint64_t n) override { return leaf_circle(6 * n) + 1; }
};
struct Square : Shape {
    NI uint64_t area(uint64_t n) override { return leaf_square(3 * n) + 2; }
};
struct Pentagon : Shape {
    NI uint64_t area(uint64_t n) override { return leaf_pentagon(n) + 3; }
};
std::unique_ptr<Shape> make_shape(unsigned which) {
    if (which == 0) return std::make_unique<Circle>();
    if (which == 1) return std::make_unique<Square>();
    return std::make_unique<Pentagon>();
}
