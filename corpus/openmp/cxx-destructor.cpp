// expect: race-free
// Private objects have constructors and destructors.
#include <cstdio>
#include <vector>
#include <omp.h>

struct Object {
    int *p = new int(0);
    Object() = default;
    Object(const Object &other) { *p = *other.p; }
    ~Object() { delete p; }
};

int main() {
    Object object;
#pragma omp parallel firstprivate(object)
    ++*object.p;
    return *object.p;
}
