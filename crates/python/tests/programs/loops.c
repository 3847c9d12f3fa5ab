/* Eval loops in the forms that compilers give to CPython's, with its names: TAIL (a function for each opcode), WRAPPER (a function
   that calls the loop), or one loop. 256 opcodes each. Or, with NONE, nothing like it. */

typedef long (*handler)(const unsigned char *pc, long sum, long *frame);

__attribute__((noinline, cold)) long rare(long sum) {
    __asm__ volatile("" : "+r"(sum));
    return sum + 1;
}

__attribute__((noinline)) long work(long sum) {
    __asm__ volatile("" : "+r"(sum));
    return sum * 3;
}

#define ROW(M, a) M(a, 0) M(a, 1) M(a, 2) M(a, 3) M(a, 4) M(a, 5) M(a, 6) M(a, 7) \
                  M(a, 8) M(a, 9) M(a, A) M(a, B) M(a, C) M(a, D) M(a, E) M(a, F)
#define ALL(M) ROW(M, 0) ROW(M, 1) ROW(M, 2) ROW(M, 3) ROW(M, 4) ROW(M, 5) ROW(M, 6) ROW(M, 7) \
               ROW(M, 8) ROW(M, 9) ROW(M, A) ROW(M, B) ROW(M, C) ROW(M, D) ROW(M, E) ROW(M, F)

#if defined(NONE)
long _PyEval_EvalFrameDefault(const unsigned char *pc, long sum) { return work(sum) + *pc; }

#elif defined(TAIL)
#if defined(__clang__)
#define MUSTTAIL __attribute__((musttail))
#else
#define MUSTTAIL
#endif

static const handler handlers[256];

__attribute__((noinline)) static long _TAIL_CALL_unwind(const unsigned char *pc, long sum, long *frame) {
    frame[1] = work(sum);
    if (frame[1] > 1000)
        return 0;
    MUSTTAIL return handlers[*pc](pc + 1, sum, frame);
}

__attribute__((noinline)) static long _TAIL_CALL_error(const unsigned char *pc, long sum, long *frame) {
    frame[0] = work(sum);
    MUSTTAIL return _TAIL_CALL_unwind(pc, frame[0] + 1, frame);
}

#define DEFINE(a, b) \
    __attribute__((noinline)) static long _TAIL_CALL_##a##b(const unsigned char *pc, long sum, long *frame) { \
        long number = 0x##a##b; \
        frame[2] = work(sum + number); \
        if (__builtin_expect(frame[2] == number, 0)) { \
            frame[3] = rare(number) + rare(sum); \
            MUSTTAIL return _TAIL_CALL_error(pc, number, frame); \
        } \
        MUSTTAIL return handlers[*pc](pc + 1, sum + number, frame); \
    } \
    /* others lie between them */ \
    __attribute__((noinline, used)) static long other_##a##b(long sum) { return work(sum) + 0x##a##b; }
ALL(DEFINE)
#define NAME(a, b) _TAIL_CALL_##a##b,
static const handler handlers[256] = {ALL(NAME)};

static inline __attribute__((always_inline)) long enter(const unsigned char *pc, long sum) {
    long frame[8];
    __asm__ volatile("" : : "r"(frame) : "memory");
    return handlers[*pc](pc + 1, sum, frame) + frame[1];
}

__attribute__((noinline)) long _PyEval_EvalFrameDefault(const unsigned char *pc, long sum) { return enter(pc, sum); }

/* a function that has a copy of the entry in it */
#ifdef INLINED
__attribute__((noinline)) long vector(const unsigned char *pc, long sum) { return work(enter(pc, work(sum))) + 1; }
#endif

#else
#ifdef WRAPPER
#define LOOP loop
static long loop(const unsigned char *pc, long sum) __asm__("_PyEval_EvalFrameDefault.part.0");
__attribute__((noinline)) long _PyEval_EvalFrameDefault(const unsigned char *pc, long sum) {
    if (!pc)
        return 0;
    return loop(pc, sum) + work(sum);
}
__attribute__((noinline)) static
#else
#define LOOP _PyEval_EvalFrameDefault
__attribute__((noinline))
#endif
long LOOP(const unsigned char *pc, long sum) {
    long frame[8];
#define LABEL(a, b) &&label_##a##b,
    static const void *const targets[256] = {ALL(LABEL)};
    __asm__ volatile("" : : "r"(frame) : "memory");
    goto *targets[*pc++];
#define OPCODE(a, b) \
    label_##a##b: \
        frame[2] = work(sum + 0x##a##b) + frame[1]; \
        if (__builtin_expect(frame[2] == 0x##a##b, 0)) { \
            frame[3] = rare(sum) + rare(frame[2]); \
            goto error; \
        } \
        sum ^= 0x##a##b; \
        goto *targets[*pc++];
    ALL(OPCODE)
error:
    __asm__ volatile("" : : "r"(frame) : "memory");
    return frame[3];
}
#endif

long run(const unsigned char *pc) { return _PyEval_EvalFrameDefault(pc, 1); }
int main(int count, char **words) { return count > 1 && run((const unsigned char *)words[1]) == 3; }
