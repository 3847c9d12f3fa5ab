/* evicted SECONDS: a thread on a stack that is a file in memory. In every other phase what is above the innermost two
 * frames is taken out of the process's page tables, as reclaim of memory does, so that it is there for the thread and
 * not for a sampler, which may not wait for a page; with it goes the code of the program and of its libraries. Says how
 * much CPU time each phase had. */
#define _GNU_SOURCE
#include "kit.h"
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#define STACK (1 << 20)
#define PAGE 4096
/* Stays: the C library keeps there what the kernel touches at each switch of threads, and a page that is touched brings
 * its neighbours along. */
#define TOP (128 << 10)
LEAF(present)
LEAF(absent)
static char *stack;
static double cpu[2];

static int drop_code(struct dl_phdr_info *object, size_t size, void *nothing) {
    (void)size, (void)nothing;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(uintptr_t)(PAGE - 1);
        uintptr_t end = (object->dlpi_addr + segment->p_vaddr + segment->p_memsz + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        /* code only: it is as in its file; the kernel's own (vdso) refuses */
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && !(segment->p_flags & PF_W))
            (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
    return 0;
}
static double thread_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
NI double phase(int evict) {
    volatile char space[2 * PAGE];
    space[0] = 1;
    double begun = thread_cpu();
    if (evict) {
        uintptr_t from = ((uintptr_t)space + PAGE) & ~(uintptr_t)(PAGE - 1);
        dl_iterate_phdr(drop_code, 0);
        if (madvise((void *)from, (uintptr_t)stack + STACK - TOP - from, MADV_DONTNEED)) exit(6);
        kit_sink += absent(4000000);
    } else
        kit_sink += present(4000000);
    return thread_cpu() - begun + 0 * space[0];
}
NI double middle(int evict) {
    volatile char space[3 * PAGE];
    space[PAGE] = (char)evict;
    double used = phase(evict);
    return used + 0 * space[PAGE];
}
static void *thread(void *nothing) {
    volatile char space[TOP];
    space[0] = 0;
    for (unsigned i = 0; thread_cpu() < kit_budget; i++) cpu[i % 2] += middle(i % 2) + space[0];
    return nothing;
}
int main(int argc, char **argv) {
    static const char *const names[] = {"present", "absent"};
    pthread_attr_t own;
    pthread_t id;
    int file = memfd_create("stack", 0);
    kit_begin(argc, argv);
    if (file < 0 || ftruncate(file, STACK)) return 5;
    stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_attr_init(&own);
    if (stack == MAP_FAILED || pthread_attr_setstack(&own, stack, STACK)) return 5;
    if (pthread_create(&id, &own, thread, 0)) return 5;
    pthread_join(id, 0);
    kit_end(2, names, cpu, 0);
    return 0;
}
