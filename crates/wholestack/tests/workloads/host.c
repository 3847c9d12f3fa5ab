/* Loads and unloads libraries while it works.
 *
 *   host SECONDS alternate PHASE_MS A.so B.so   loads one, runs it for about PHASE_MS of CPU time, unloads it; the next
 *   host SECONDS late A.so                      works by itself for half of the time, then loads one and runs it
 * Says how often the second library lay where the first one had been.
 */
#define _GNU_SOURCE
#include "kit.h"
#include <dlfcn.h>

typedef uint64_t work(uint64_t);
LEAF(own_leaf)
NI uint64_t own(uint64_t n) { return own_leaf(n) + 1; }
static uintptr_t before;
static unsigned same, loads;

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
NI double run_a(work *entry, double until) {
    double begun = kit_cpu(), now;
    do kit_sink += entry(20000); while ((now = kit_cpu()) - begun < until);
    return now - begun;
}
NI double run_b(work *entry, double until) {
    double begun = kit_cpu(), now;
    do kit_sink += entry(20000); while ((now = kit_cpu()) - begun < until);
    return now - begun + 0 * until;
}
int main(int argc, char **argv) {
    int late = argc > 2 && !strcmp(argv[2], "late");
    const char *names[] = {late ? "own" : "a", late ? "a" : "b"};
    double done[2] = {0};
    void *handle;
    char more[64];
    kit_begin(argc, argv);
    if (late) {
        double half = kit_budget / 2;
        while (kit_cpu() - kit_begun < half) kit_sink += own(20000);
        done[0] = kit_cpu() - kit_begun;
        done[1] = run_a(load(argv[3], &handle), half);
    } else {
        for (unsigned i = 0; kit_more(); i++) {
            double phase = atof(argv[3]) * 1e-3 * (0.5 + kit_random(1000) / 1000.0);
            work *entry = load(argv[4 + i % 2], &handle);
            done[i % 2] += i % 2 ? run_b(entry, phase) : run_a(entry, phase);
            dlclose(handle);
        }
    }
    snprintf(more, sizeof more, ",\"loads\":%u,\"same\":%u", loads, same);
    kit_end(2, names, done, more);
    return 0;
}
