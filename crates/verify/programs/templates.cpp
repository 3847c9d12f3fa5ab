// The usual C++: containers, algorithms, virtual calls, function objects, streams.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

volatile long sink;

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

struct Square : Shape {
    double side;
    explicit Square(double value) : side(value) {}
    double area() const override { return side * side; }
};

struct Circle : Shape {
    double radius;
    explicit Circle(double value) : radius(value) {}
    double area() const override { return radius * radius * 3; }
};

static long times(const std::function<long(long)> &function, long count) {
    long total = 0;
    for (long i = 0; i < count; i++) total += function(i);
    return total;
}

int main() {
    std::vector<long> values;
    for (long i = 0; i < 20; i++) values.push_back((i * 7919) % 101);
    std::sort(values.begin(), values.end(), [](long a, long b) { return a > b; });
    std::map<std::string, long> names;
    for (long i = 0; i < 6; i++) names["name " + std::to_string(i * 37 % 11)] = values[i];
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>(2.0));
    shapes.push_back(std::make_unique<Circle>(3.0));
    double area = 0;
    for (const auto &shape : shapes) area += shape->area();
    if (dynamic_cast<Circle *>(shapes[0].get()) != nullptr) area = 0;
    std::ostringstream text;
    text << names.size() << ' ' << area;
    long captured = values[3];
    sink = times([captured](long value) { return value * captured; }, 5) + static_cast<long>(text.str().size());
    return 0;
}
