/* Needs no library; one function is placed far from the other, by the linker's --section-start. */
__attribute__((noinline)) long near_one(volatile long *values, long count) {
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

__attribute__((noinline, section(".far"))) long far_one(long count) {
    volatile long values[64];
    for (long i = 0; i < 64; i++)
        values[i] = i * count;
    return near_one(values, count & 63) + 1;
}

void _start(void) {
    volatile long sink = far_one(7);
    (void)sink;
    for (;;)
        ;
}
