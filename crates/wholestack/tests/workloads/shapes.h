// An interface whose implementations are in a shared library.
#pragma once
#include <cstdint>
#include <memory>

struct Shape {
    virtual ~Shape() = default;
    virtual uint64_t area(uint64_t n) = 0;
};
std::unique_ptr<Shape> make_shape(unsigned which);
