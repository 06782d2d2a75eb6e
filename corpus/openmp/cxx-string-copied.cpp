// expect: race
// A string is copied while another thread appends to it.
#include <cstdio>
#include <string>
#include <omp.h>

int main() {
    std::string text = "a text that is too long to be kept in the string itself", copies[2];
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
        text += ", and becomes longer";
    else
        copies[1] = text;
    std::printf("%zu\n", copies[1].size());
}
