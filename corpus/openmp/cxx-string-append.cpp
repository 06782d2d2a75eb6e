// expect: race
// A string that threads append to: what does it is a part of the library that comes compiled.
#include <cstdio>
#include <string>

int main() {
    std::string text;
    text.reserve(100);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 8; i++) {
        text.append("x"); // RACE
    }
    std::printf("%zu\n", text.size());
}
