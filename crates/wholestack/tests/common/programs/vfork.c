// Waits uninterruptibly: the parent of a vfork sleeps until its child calls exec or ends, and this one does neither.
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

int main(void) {
    puts("ready");
    fflush(stdout);
    if (vfork() == 0) {
        char byte;
        // until the test lets it go on or is gone
        if (read(0, &byte, 1) < 0) _exit(1);
        _exit(0);
    }
    for (;;) pause();
}
