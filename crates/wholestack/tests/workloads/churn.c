/* churn SECONDS PHASE_US A.so B.so...: a thread loads a library, drawn by lot, calls its `entry` for about PHASE_US of
 * CPU time from a function of its own for each library, unloads it; the next. While a library is in use the thread is
 * called after its function, so that each sample says by its name whose frames it may have, however many it has. Says how
 * often one lay where another had been. */
#define _GNU_SOURCE
#include "kit.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>

typedef uint64_t work(uint64_t);
static uintptr_t before;
static unsigned loads, same;

static work *load(const char *path, void **handle) {
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    work *entry = *handle ? (work *)dlsym(*handle, "entry") : 0;
    Dl_info info;
    if (!entry || !dladdr((void *)entry, &info)) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    same += (uintptr_t)info.dli_fbase == before;
    before = (uintptr_t)info.dli_fbase;
    loads++;
    return entry;
}
#define RUN(number)                                                                                                    \
    NI double run_##number(work *entry, double until) {                                                                \
        double begun = kit_cpu(), now;                                                                                 \
        do kit_sink += entry(5000 + number); while ((now = kit_cpu()) - begun < until);                                \
        return now - begun;                                                                                            \
    }
RUN(0)
RUN(1)
RUN(2)
RUN(3)

static double done[4];
static const char *const names[] = {"run_0", "run_1", "run_2", "run_3"};
static char **arguments;
static unsigned libraries;

static void *churn(void *nothing) {
    static double (*const run[])(work *, double) = {run_0, run_1, run_2, run_3};
    while (kit_more()) {
        unsigned which = kit_random(libraries);
        double until = atof(arguments[2]) * 1e-6 * (0.5 + kit_random(1000) / 1000.0);
        void *handle;
        work *entry = load(arguments[3 + which], &handle);
        prctl(PR_SET_NAME, names[which]);
        done[which] += run[which](entry, until);
        prctl(PR_SET_NAME, "linker");
        dlclose(handle);
    }
    return nothing;
}
int main(int argc, char **argv) {
    pthread_t thread;
    char more[64];
    libraries = (unsigned)(argc - 3);
    arguments = argv;
    if (argc < 4 || libraries > 4) return 2;
    kit_begin(argc, argv);
    if (pthread_create(&thread, 0, churn, 0)) return 5;
    pthread_join(thread, 0);
    snprintf(more, sizeof more, ",\"loads\":%u,\"same\":%u", loads, same);
    kit_end((int)libraries, names, done, more);
    return 0;
}
