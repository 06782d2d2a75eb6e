// libstdc++'s strings come compiled, without hooks, and its headers say so. With -1 they do not: the program instantiates them itself, with hooks.
// Streams stay as they are: the standard ones may be used by several threads at once, as the library's own code knows and its hooks would not.

#include_next <bits/c++config.h>

#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE -1
