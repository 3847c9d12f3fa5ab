// Virtual calls into a shared library.
#include "kit.h"
#include "shapes.h"

NI uint64_t measure(Shape &shape, uint64_t n) { return shape.area(n) + 1; }

int main(int argc, char **argv) {
    static const char *const names[] = {"leaf_circle", "leaf_square", "leaf_pentagon"};
    static const unsigned weights[] = {6, 3, 1};
    double done[3] = {0, 0, 0};
    std::unique_ptr<Shape> shapes[3] = {make_shape(0), make_shape(1), make_shape(2)};
    kit_begin(argc, argv);
    while (kit_more()) {
        unsigned which = kit_random(3);
        kit_sink = kit_sink + measure(*shapes[which], 3000);
        done[which] += weights[which] * 3000;
    }
    kit_end(3, names, done, nullptr);
}
