// expect: race-free
// The twin of cxx-string-append.
#include <cstdio>
#include <string>

int main() {
    std::string text;
    text.reserve(100);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 8; i++) {
#pragma omp critical
        text.append("x");
    }
    std::printf("%zu\n", text.size());
}
