// Does what it is told, line by line, and answers each line with one line.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef STATIC
#include <dlfcn.h>
#endif

static char *self;
static char command[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int wanted_threads;

static void loop(void);

static void answer(unsigned long number) {
    printf("%lx\n", number);
    fflush(stdout);
}

static int tid(void) { return (int)syscall(SYS_gettid); }

static void *waiting_thread(void *argument) {
    int number = (int)(long)argument;
    prctl(PR_SET_NAME, "waiting");
    answer(tid());
    pthread_mutex_lock(&lock);
    while (wanted_threads >= number) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *exec_thread(void *argument) {
    execl(self, self, argument, NULL);
    _exit(99);
}

static void *loop_thread(void *argument) {
    (void)argument;
    usleep(20000); // the first thread is gone by then
    answer(tid());
    loop();
    exit(0);
}

static void storm(int processes) {
    for (int i = 0; i < processes; i++) {
        pid_t child = i % 4 == 3 ? vfork() : fork();
        if (child == 0) {
            if (i % 2) execl(self, self, "quit", NULL);
            if (i % 3 == 0) mmap(0, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            _exit(0);
        }
        if (i % 8 == 7) while (wait(NULL) > 0) {}
    }
    while (wait(NULL) > 0) {}
}

static void obey(void) {
    static void *library;
    static pthread_t threads[64];
    char verb[32] = "", path[2048] = "";
    unsigned long a = 0, b = 0, c = 0;
    sscanf(command, "%31s %lx %lx %lx", verb, &a, &b, &c);
    sscanf(command, "%*s %2047[^\n]", path);
    if (!strcmp(verb, "pid")) answer(getpid());
#ifndef STATIC
    else if (!strcmp(verb, "dlopen")) { library = dlopen(path, RTLD_NOW); answer(library != NULL); }
    else if (!strcmp(verb, "dlclose")) answer(dlclose(library));
#endif
    else if (!strcmp(verb, "mmap"))
        answer((unsigned long)mmap((void *)a, b, c, MAP_PRIVATE | MAP_ANONYMOUS | (a ? MAP_FIXED : 0), -1, 0));
    else if (!strcmp(verb, "mapfile")) {
        int file = open(path, O_RDONLY);
        answer((unsigned long)mmap(0, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 4096));
        close(file);
    }
    else if (!strcmp(verb, "memfd")) {
        int file = memfd_create("code", 0);
        if (ftruncate(file, 8192)) _exit(98);
        answer((unsigned long)mmap(0, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0));
        close(file);
    }
    else if (!strcmp(verb, "mprotect")) answer(mprotect((void *)a, b, c));
    else if (!strcmp(verb, "munmap")) answer(munmap((void *)a, b));
    else if (!strcmp(verb, "mremap")) answer((unsigned long)mremap((void *)a, b, c, MREMAP_MAYMOVE));
    else if (!strcmp(verb, "name")) answer(prctl(PR_SET_NAME, path));
    else if (!strcmp(verb, "names")) {
        for (unsigned long i = a; i < a + b; i++) {
            char name[16];
            snprintf(name, sizeof name, "%lu", i);
            prctl(PR_SET_NAME, name);
        }
        answer(0);
    }
    else if (!strcmp(verb, "thread")) {
        wanted_threads++;
        pthread_create(&threads[wanted_threads], NULL, waiting_thread, (void *)(long)wanted_threads); // it answers
    }
    else if (!strcmp(verb, "endthread")) {
        pthread_mutex_lock(&lock);
        pthread_t last = threads[wanted_threads--];
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        answer(pthread_join(last, NULL));
    }
    else if (!strcmp(verb, "fork")) {
        pid_t child = fork();
        if (child == 0) { pause(); _exit(0); }
        answer(child);
    }
    else if (!strcmp(verb, "wait")) { int result = kill((pid_t)a, 9); waitpid((pid_t)a, NULL, 0); answer(result); }
    else if (!strcmp(verb, "zombie")) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        siginfo_t info;
        waitid(P_PID, child, &info, WEXITED | WNOWAIT);
        answer(child);
    }
    else if (!strcmp(verb, "storm")) { storm((int)a); answer(0); }
    else if (!strcmp(verb, "exec")) { execl(self, self, path, NULL); _exit(99); } // the new image answers
    else if (!strcmp(verb, "threadexec")) {
        static char copy[2048];
        strcpy(copy, path);
        pthread_t thread;
        pthread_create(&thread, NULL, exec_thread, copy);
        pthread_join(thread, NULL);
    }
    else if (!strcmp(verb, "leaderexit")) {
        pthread_t thread;
        pthread_create(&thread, NULL, loop_thread, NULL);
        pthread_exit(NULL);
    }
    else if (!strcmp(verb, "unlink")) answer(unlink(path));
    else answer(-1ul);
}

static void loop(void) {
    while (fgets(command, sizeof command, stdin)) obey();
}

int main(int count, char **arguments) {
    self = realpath("/proc/self/exe", NULL);
    if (count > 1 && !strcmp(arguments[1], "quit")) return 0;
    setvbuf(stdin, NULL, _IONBF, 0);
    answer(getpid());
    loop();
    return 0;
}
