// Something to be mapped: a loop, and functions around it.
int first(int x) { return x * 3 + 1; }

void spin(void) {
    for (;;) __asm__ volatile("");
}

int last(int x, int y) {
    int volatile sum = 0;
    for (int i = 0; i < x; i++) sum += first(y + i);
    return sum;
}
