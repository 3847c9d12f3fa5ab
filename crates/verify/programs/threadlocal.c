/* Thread-local variables of a library that is opened late: `__tls_get_addr` and TLS descriptors. */
#include <dlfcn.h>
#include <stdio.h>

volatile long sink;

int main(int count, char **arguments) {
    if (count < 2) return 2;
    void *library = dlopen(arguments[1], RTLD_LAZY);
    if (library == NULL) return 3;
    long (*add)(long) = (long (*)(long))dlsym(library, "add");
    if (add == NULL) return 4;
    for (long i = 0; i < 4; i++) sink = add(i);
    dlclose(library);
    return 0;
}
