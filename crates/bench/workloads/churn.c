/* What wakes the programs that follow processes: forks, execs, and searches for free memory.
 *
 *   churn ROUNDS: so many children that become /bin/true, and a thousand times as many mappings
 */
#include "bench.h"
#include <sys/mman.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    unsigned long rounds = bench_argument(argc, argv, 1, 100);
    bench_begin();
    for (unsigned long i = 0; i < rounds; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(127);
        }
        if (child > 0) waitpid(child, 0, 0);
        for (int k = 0; k < 1000; k++) {
            void *memory = mmap(0, 16384, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory != MAP_FAILED) munmap(memory, 16384);
        }
    }
    bench_end();
    return 0;
}
