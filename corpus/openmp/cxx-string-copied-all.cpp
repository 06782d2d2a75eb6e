// expect: race-free
// The twin of cxx-string-copied: all threads copy, and it becomes longer behind the barrier.
#include <cstdio>
#include <string>
#include <omp.h>

int main() {
    std::string text = "a text that is too long to be kept in the string itself", copies[64];
#pragma omp parallel
    {
        copies[omp_get_thread_num() % 64] = text;
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            text += ", and becomes longer";
    }
    std::printf("%zu\n", copies[1].size() + text.size());
}
