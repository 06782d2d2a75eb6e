// Functions of the C library that read and write memory of the program: what they touch is told, as accesses of the code that has called them.
//
// In C, since some of them have variable arguments. `dagsan cc` compiles it with the runtime. Not seen: what printf and its like read for %s, what
// scanf writes, and functions that are not in this file.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

// Of dagsan-rt: the code that has called the function of this frame has read or written so many bytes.
extern void __dagsan_touched(const void *start, size_t size, int written, const void *frame);

// Is there, if `dagsan cc` has linked something that has no hooks.
extern const char dagsan_without_hooks __attribute__((weak));

int __dagsan_has_code_without_hooks(void) { return &dagsan_without_hooks != NULL; }

#define READS(start, size) __dagsan_touched(start, size, 0, __builtin_frame_address(0))
#define WRITES(start, size) __dagsan_touched(start, size, 1, __builtin_frame_address(0))

// The function of the C library, which is looked up once; if two threads do so, they find the same.
#define REAL(result, name, ...)                                                                                                       \
    static result (*found)(__VA_ARGS__);                                                                                              \
    result (*real)(__VA_ARGS__) = __atomic_load_n(&found, __ATOMIC_RELAXED);                                                          \
    if (!real) {                                                                                                                      \
        real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);                                                                       \
        __atomic_store_n(&found, real, __ATOMIC_RELAXED);                                                                             \
    }

// Without the library's own, which are told of.
static size_t length(const char *text) {
    size_t count = 0;
    while (text[count])
        count++;
    return count;
}

static size_t length_within(const char *text, size_t most) {
    size_t count = 0;
    while (count < most && text[count])
        count++;
    return count;
}

static size_t at_most(size_t count, size_t most) { return count < most ? count : most; }

// ---- lengths, searches, comparisons ----

size_t strlen(const char *text) {
    REAL(size_t, strlen, const char *)
    size_t count = real(text);
    READS(text, count + 1);
    return count;
}

size_t strnlen(const char *text, size_t most) {
    size_t count = length_within(text, most);
    READS(text, at_most(count + 1, most));
    return count;
}

char *strchr(const char *text, int wanted) {
    REAL(char *, strchr, const char *, int)
    char *at = real(text, wanted);
    READS(text, at ? (size_t)(at - text) + 1 : length(text) + 1);
    return at;
}

char *strrchr(const char *text, int wanted) {
    REAL(char *, strrchr, const char *, int)
    READS(text, length(text) + 1);
    return real(text, wanted);
}

char *strstr(const char *text, const char *wanted) {
    REAL(char *, strstr, const char *, const char *)
    READS(wanted, length(wanted) + 1);
    READS(text, length(text) + 1);
    return real(text, wanted);
}

void *memchr(const void *start, int wanted, size_t size) {
    REAL(void *, memchr, const void *, int, size_t)
    void *at = real(start, wanted, size);
    READS(start, at ? (size_t)((char *)at - (char *)start) + 1 : size);
    return at;
}

// How many bytes of two texts decide which comes first.
static size_t compared(const char *one, const char *other, size_t most, int folds) {
    size_t count = 0;
    for (; count < most; count++) {
        unsigned char a = (unsigned char)one[count], b = (unsigned char)other[count];
        if (folds && a >= 'A' && a <= 'Z')
            a |= 32;
        if (folds && b >= 'A' && b <= 'Z')
            b |= 32;
        if (a != b || !a)
            return count + 1;
    }
    return count;
}

#define COMPARES(name, most, folds, parameters, types, ...)                                                                           \
    int name parameters {                                                                                                             \
        REAL(int, name, types)                                                                                                        \
        size_t seen = compared(one, other, most, folds);                                                                              \
        READS(one, seen);                                                                                                             \
        READS(other, seen);                                                                                                           \
        return real(__VA_ARGS__);                                                                                                     \
    }

#define TWO const char *, const char *
#define TWO_AND_SIZE const char *, const char *, size_t

COMPARES(strcmp, (size_t)-1, 0, (const char *one, const char *other), TWO, one, other)
COMPARES(strcasecmp, (size_t)-1, 1, (const char *one, const char *other), TWO, one, other)
COMPARES(strncmp, size, 0, (const char *one, const char *other, size_t size), TWO_AND_SIZE, one, other, size)
COMPARES(strncasecmp, size, 1, (const char *one, const char *other, size_t size), TWO_AND_SIZE, one, other, size)

// ---- copies ----

char *strcpy(char *to, const char *from) {
    REAL(char *, strcpy, char *, const char *)
    size_t count = length(from) + 1;
    READS(from, count);
    WRITES(to, count);
    return real(to, from);
}

char *stpcpy(char *to, const char *from) {
    REAL(char *, stpcpy, char *, const char *)
    size_t count = length(from) + 1;
    READS(from, count);
    WRITES(to, count);
    return real(to, from);
}

char *strncpy(char *to, const char *from, size_t size) {
    REAL(char *, strncpy, char *, const char *, size_t)
    READS(from, at_most(length_within(from, size) + 1, size));
    WRITES(to, size);
    return real(to, from, size);
}

char *strcat(char *to, const char *from) {
    REAL(char *, strcat, char *, const char *)
    size_t count = length(from) + 1, had = length(to);
    READS(from, count);
    READS(to, had + 1);
    WRITES(to + had, count);
    return real(to, from);
}

char *strncat(char *to, const char *from, size_t size) {
    REAL(char *, strncat, char *, const char *, size_t)
    size_t count = length_within(from, size), had = length(to);
    READS(from, at_most(count + 1, size));
    READS(to, had + 1);
    WRITES(to + had, count + 1);
    return real(to, from, size);
}

char *strdup(const char *from) {
    REAL(char *, strdup, const char *)
    size_t count = length(from) + 1;
    READS(from, count);
    char *copy = real(from);
    if (copy)
        WRITES(copy, count);
    return copy;
}

char *strndup(const char *from, size_t size) {
    REAL(char *, strndup, const char *, size_t)
    size_t count = length_within(from, size);
    READS(from, at_most(count + 1, size));
    char *copy = real(from, size);
    if (copy)
        WRITES(copy, count + 1);
    return copy;
}

// ---- numbers ----

#define READS_NUMBER(result, name)                                                                                                    \
    result name(const char *text, char **end) {                                                                                       \
        REAL(result, name, const char *, char **)                                                                                     \
        char *last;                                                                                                                   \
        result number = real(text, &last);                                                                                            \
        READS(text, (size_t)(last - text) + 1);                                                                                       \
        if (end) {                                                                                                                    \
            WRITES(end, sizeof *end);                                                                                                 \
            *end = last;                                                                                                              \
        }                                                                                                                             \
        return number;                                                                                                                \
    }

READS_NUMBER(double, strtod)
READS_NUMBER(float, strtof)

#define READS_INTEGER(result, name)                                                                                                   \
    result name(const char *text, char **end, int base) {                                                                             \
        REAL(result, name, const char *, char **, int)                                                                                \
        char *last;                                                                                                                   \
        result number = real(text, &last, base);                                                                                      \
        READS(text, (size_t)(last - text) + 1);                                                                                       \
        if (end) {                                                                                                                    \
            WRITES(end, sizeof *end);                                                                                                 \
            *end = last;                                                                                                              \
        }                                                                                                                             \
        return number;                                                                                                                \
    }

READS_INTEGER(long, strtol)
READS_INTEGER(unsigned long, strtoul)
READS_INTEGER(long long, strtoll)
READS_INTEGER(unsigned long long, strtoull)

#define READS_WHOLE(result, name)                                                                                                     \
    result name(const char *text) {                                                                                                   \
        REAL(result, name, const char *)                                                                                              \
        READS(text, length(text) + 1);                                                                                                \
        return real(text);                                                                                                            \
    }

READS_WHOLE(int, atoi)
READS_WHOLE(long, atol)
READS_WHOLE(double, atof)

// ---- printing, files ----

// What was printed into room of that size.
static size_t printed(int count, size_t size) { return count < 0 ? 0 : at_most((size_t)count + 1, size); }

int vsnprintf(char *to, size_t size, const char *format, va_list arguments) {
    REAL(int, vsnprintf, char *, size_t, const char *, va_list)
    int count = real(to, size, format, arguments);
    WRITES(to, printed(count, size));
    return count;
}

int snprintf(char *to, size_t size, const char *format, ...) {
    REAL(int, vsnprintf, char *, size_t, const char *, va_list)
    va_list arguments;
    va_start(arguments, format);
    int count = real(to, size, format, arguments);
    va_end(arguments);
    WRITES(to, printed(count, size));
    return count;
}

int vsprintf(char *to, const char *format, va_list arguments) {
    REAL(int, vsprintf, char *, const char *, va_list)
    int count = real(to, format, arguments);
    WRITES(to, printed(count, (size_t)-1));
    return count;
}

int sprintf(char *to, const char *format, ...) {
    REAL(int, vsprintf, char *, const char *, va_list)
    va_list arguments;
    va_start(arguments, format);
    int count = real(to, format, arguments);
    va_end(arguments);
    WRITES(to, printed(count, (size_t)-1));
    return count;
}

int puts(const char *text) {
    REAL(int, puts, const char *)
    READS(text, length(text) + 1);
    return real(text);
}

int fputs(const char *text, FILE *file) {
    REAL(int, fputs, const char *, FILE *)
    READS(text, length(text) + 1);
    return real(text, file);
}

char *fgets(char *to, int size, FILE *file) {
    REAL(char *, fgets, char *, int, FILE *)
    char *line = real(to, size, file);
    if (line)
        WRITES(line, length(line) + 1);
    return line;
}

size_t fread(void *to, size_t size, size_t count, FILE *file) {
    REAL(size_t, fread, void *, size_t, size_t, FILE *)
    size_t whole = real(to, size, count, file);
    WRITES(to, size * whole);
    return whole;
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *file) {
    REAL(size_t, fwrite, const void *, size_t, size_t, FILE *)
    READS(from, size * count);
    return real(from, size, count, file);
}

// ---- sorting: the comparisons are the program's, the moves are not ----

void qsort(void *start, size_t count, size_t size, int (*compare)(const void *, const void *)) {
    REAL(void, qsort, void *, size_t, size_t, int (*)(const void *, const void *))
    if (count > 1)
        WRITES(start, count * size);
    real(start, count, size, compare);
}
