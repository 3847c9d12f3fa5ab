// Spins in a chain of functions. With an argument, takes it as its name; with two, ends by itself after so many rounds.
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static volatile unsigned long rounds;

__attribute__((noinline)) static void inner(unsigned long most) {
    while (most == 0 || rounds < most) rounds = rounds + 1;
}

__attribute__((noinline)) static void outer(unsigned long most) {
    inner(most);
    rounds = 0;
}

int main(int count, char **arguments) {
    if (count > 1) prctl(PR_SET_NAME, arguments[1]);
    puts("ready");
    fflush(stdout);
    outer(count > 2 ? strtoul(arguments[2], 0, 10) : 0);
    return 0;
}
