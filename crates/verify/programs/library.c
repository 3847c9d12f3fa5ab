/* What a C library writes by hand or chooses at run time, through linkage stubs that are bound at the first call. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/time.h>
#include <wchar.h>

volatile long sink;

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void copies(void) {
    static char from[5000], to[5000];
    static const size_t sizes[] = { 0, 1, 3, 7, 15, 16, 31, 33, 63, 65, 127, 129, 255, 300, 511, 1030, 2100, 4500 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = sizes[i];
        memset(from, 'a', size);
        memcpy(to, from, size);
        memmove(to + 5, to, size);
        from[size] = 0;
        to[size] = 0;
        sink = memcmp(from, to, size) + strcmp(from, to) + (long)strlen(from);
        sink = (long)strchr(from, 'b') + (long)memchr(to, 'b', size) + (long)strrchr(from, 'a');
    }
    strcpy(to, "one two three");
    strcat(to, " four");
    strncpy(from, to, 40);
    sink = (long)strstr(to, "three") + (long)strspn(to, "one ") + (long)strpbrk(to, "w") + strncasecmp(to, "ONE", 3);
    sink = (long)wcslen(L"wide text") + (long)rawmemchr(to, 'f') + (long)stpcpy(to, "x");
}

static void memory(void) {
    char *blocks[12];
    for (int i = 0; i < 12; i++) blocks[i] = malloc(16u << i);
    for (int i = 0; i < 12; i += 2) blocks[i] = realloc(blocks[i], 40u << i);
    for (int i = 0; i < 12; i++) free(blocks[i]);
    free(calloc(3, 300));
}

static void numbers(void) {
    char text[120];
    snprintf(text, sizeof text, "%d %5.3f %s %lx %c %e", 12, 3.75, "text", 255ul, 'c', 1e-9);
    double value = strtod("3.25e2", NULL) + pow(2.0, 0.3) + sin(1.5) + exp(0.7) + log(5.0) + fmod(7.5, 2.0);
    sink = (long)value + atoi("77") + sscanf("4 5", "%d", &(int){ 0 });
}

static void system_calls(void) {
    struct timespec time;
    struct timeval day;
    clock_gettime(CLOCK_MONOTONIC, &time);
    gettimeofday(&day, NULL);
    sink = time.tv_nsec + day.tv_usec + getppid() + (long)(getenv("PATH") != NULL) + access("/", R_OK);
    errno = 0;
}

int main(void) {
    int values[20];
    for (int i = 0; i < 20; i++) values[i] = (i * 37) % 23;
    qsort(values, 20, sizeof values[0], compare);
    copies();
    memory();
    numbers();
    system_calls();
    puts("done");
    return 0;
}
