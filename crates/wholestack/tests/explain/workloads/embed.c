// Embeds Python. embed MODE CODE [LIBRARY]; with -DLATE the library is loaded when it is needed, else it is linked.
//
//   plain   runs CODE
//   late    says WAITING and runs it once it has read a line
//   again   initialises, finalises and initialises Python again before it runs CODE
//   beside  has threads of its own: one with a state and no frame, one that has never called Python
//   within  runs it in a further interpreter
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What is used is declared here, so that no version's headers are needed.
void Py_InitializeEx(int signals);
int Py_FinalizeEx(void);
int PyRun_SimpleStringFlags(const char *code, void *flags);
int PyGILState_Ensure(void);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *state);
void *Py_NewInterpreter(void);

static struct {
    void (*initialize)(int);
    int (*finalize)(void);
    int (*run)(const char *, void *);
    int (*ensure)(void);
    void *(*save)(void);
    void (*restore)(void *);
    void *(*new_interpreter)(void);
} python;

static void die(const char *what) {
    fprintf(stderr, "embed: %s\n", what);
    exit(1);
}

#ifdef LATE
static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) die(dlerror());
    return found;
}
#define FIND(name) find(library, #name)
#else
#define FIND(name) name
#endif

static void load(const char *path) {
#ifdef LATE
    // extension modules take what they need from it
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) die(dlerror());
#else
    (void)path;
#endif
    python.initialize = FIND(Py_InitializeEx);
    python.finalize = FIND(Py_FinalizeEx);
    python.run = FIND(PyRun_SimpleStringFlags);
    python.ensure = FIND(PyGILState_Ensure);
    python.save = FIND(PyEval_SaveThread);
    python.restore = FIND(PyEval_RestoreThread);
    python.new_interpreter = FIND(Py_NewInterpreter);
}

static void *with_state(void *started) {
    python.ensure();
    python.save();
    pthread_barrier_wait(started);
    for (;;) pause();
    return 0;
}

static void *without(void *started) {
    pthread_barrier_wait(started);
    for (;;) pause();
    return 0;
}

static void start_threads(void) {
    static pthread_barrier_t started;
    pthread_t thread;
    // 3.6 has a GIL once there is a second thread
    if (python.run("import _thread; _thread.start_new_thread(int, ())", 0) != 0) die("no threads");
    pthread_barrier_init(&started, 0, 3);
    pthread_create(&thread, 0, with_state, &started);
    pthread_create(&thread, 0, without, &started);
    void *saved = python.save();
    pthread_barrier_wait(&started);
    python.restore(saved);
}

int main(int count, char **arguments) {
    if (count < 3) die("embed MODE CODE [LIBRARY]");
    const char *mode = arguments[1], *code = arguments[2], *path = count > 3 ? arguments[3] : 0;
    if (strcmp(mode, "late") == 0) {
        char byte;
        if (write(1, "WAITING\n", 8) != 8) die("no output");
        while (read(0, &byte, 1) == 1 && byte != '\n') continue;
    }
    load(path);
    python.initialize(0);
    if (strcmp(mode, "again") == 0) {
        if (python.run("import _thread", 0) != 0 || python.finalize() != 0) die("the first time failed");
        python.initialize(0);
    }
    if (strcmp(mode, "beside") == 0) start_threads();
    if (strcmp(mode, "within") == 0 && !python.new_interpreter()) die("no further interpreter");
    return python.run(code, 0) != 0;
}
