/* A function whose stack is realigned and grows: its CFA is in r10, then loaded from below rbp. */
#include <alloca.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) int fill(char *a, int n, char *b) {
    memset(a, n, 64);
    memset(b, n, n);
    return a[n & 63] + b[0];
}

__attribute__((noinline)) int realigned(int n) {
    char aligned[64] __attribute__((aligned(64)));
    char *b = alloca(n + 1);
    return fill(aligned, n, b);
}

int main(int argc, char **argv) {
    (void)argv;
    printf("%d\n", realigned(argc));
    return 0;
}
