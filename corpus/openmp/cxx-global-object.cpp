// expect: race-free
// Objects that are made before main, by constructors that have hooks.
#include <cstdio>
#include <string>
#include <vector>

std::vector<int> numbers(10, 3);
std::string name = std::string("a name that is too long to be kept in place") + ", made before main";

int main() {
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 10; i++)
        sum += numbers[i] + (name.size() > 40);
    std::printf("%d\n", sum);
    return sum != 40;
}
