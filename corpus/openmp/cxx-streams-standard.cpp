// expect: race-free
// The standard streams may be used by all threads at once; a string stream is each thread's own.
#include <iostream>
#include <sstream>

int main() {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 8; i++) {
        std::ostringstream line;
        line << "line " << i << "\n";
        std::cout << line.str();
    }
}
