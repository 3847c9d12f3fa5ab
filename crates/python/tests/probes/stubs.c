// Functions in the two forms in which C libraries keep values of pthread keys, to be compiled in many ways and read.
// -DPOINTER=N: the thread pointer (aarch64: less SIZE) has a pointer to an array of values at N, as in musl.
// -DINLINE: as in glibc, with a first block in the thread's structure and pointers to others.
#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
static inline char *thread(void) {
    char *self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
}
#else
static inline char *thread(void) {
    char *self;
    __asm__("mrs %0, tpidr_el0" : "=r"(self));
    return self - SIZE;
}
#endif

#ifdef POINTER
struct self {
    char before[POINTER];
    void **values;
    unsigned char used : 1, other : 1;
};

void *pthread_getspecific(unsigned key) { return ((struct self *)thread())->values[key]; }

int pthread_setspecific(unsigned key, const void *value) {
    struct self *self = (struct self *)thread();
    if (self->values[key] != value) {
        self->values[key] = (void *)value;
        self->used = 1;
    }
    return 0;
}
#endif

#ifdef INLINE
struct entry {
    uintptr_t sequence;
    void *value;
};
struct self {
    char before[FIRST];
    struct entry first[32];
    struct entry *blocks[32];
};
struct entry known[1024] __attribute__((visibility("hidden")));

void *pthread_getspecific(unsigned key) {
    struct self *self = (struct self *)thread();
    struct entry *entry;
    if (key < 32) {
        entry = &self->first[key];
    } else {
        if (key >= 1024) return NULL;
        struct entry *block = self->blocks[key / 32];
        if (!block) return NULL;
        entry = &block[key % 32];
    }
    void *value = entry->value;
    if (value && entry->sequence != known[key].sequence) value = entry->value = NULL;
    return value;
}
#endif
