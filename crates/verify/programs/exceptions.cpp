// Exceptions through frames of all kinds: cleanups, rethrown, nested, out of constructors, past aligned frames.
#include <alloca.h>
#include <exception>
#include <stdexcept>
#include <string>

#define NOINLINE __attribute__((noinline))

volatile long sink;

struct Guard {
    long value;
    explicit Guard(long number) : value(number) { sink = value; }
    NOINLINE ~Guard() { sink = sink + value; }
};

struct Thrower {
    Guard first;
    explicit Thrower(long value) : first(value) {
        if (value & 1) throw value;
    }
};

NOINLINE static long down(long depth) {
    Guard guard(depth);
    if (depth == 0) throw std::runtime_error("bottom");
    return down(depth - 1) + guard.value;
}

NOINLINE static long aligned(long depth) {
    alignas(64) char bytes[128];
    bytes[depth] = 1;
    char *memory = static_cast<char *>(alloca(depth * 32 + 16));
    memory[0] = 2;
    Guard guard(depth);
    return down(depth) + bytes[depth] + memory[0];
}

NOINLINE static long again(long depth) {
    try {
        return aligned(depth);
    } catch (const std::exception &) {
        Guard guard(9);
        throw;
    }
}

NOINLINE static long nested(long depth) {
    try {
        return again(depth);
    } catch (const std::runtime_error &error) {
        try {
            Thrower thrower(depth | 1);
            return thrower.first.value;
        } catch (long value) {
            return value + static_cast<long>(std::string(error.what()).size());
        }
    }
}

NOINLINE static long never(long depth) noexcept {
    try {
        return nested(depth);
    } catch (...) {
        return -1;
    }
}

struct Base {
    virtual ~Base() = default;
    virtual long get(long value) { return value; }
};

struct Derived : Base {
    long get(long value) override {
        if (value > 1) throw std::out_of_range("value");
        return Base::get(value) + 1;
    }
};

int main() {
    sink = never(2);
    Derived derived;
    Base *base = &derived;
    for (long i = 0; i < 3; i++) {
        try {
            sink = base->get(i);
        } catch (const std::logic_error &) {
            sink = -2;
        }
    }
    return 0;
}
