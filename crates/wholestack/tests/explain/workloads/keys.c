// Preloaded: takes 40 pthread keys before the program begins, so that those it makes itself have their values in the
// second-level block. Each has a value in the first thread.
#include <pthread.h>
#include <stdlib.h>

__attribute__((constructor)) static void take(void) {
    for (long number = 0; number < 40; number++) {
        pthread_key_t key;
        if (pthread_key_create(&key, 0) != 0 || pthread_setspecific(key, (void *)(number + 1)) != 0) abort();
    }
}
