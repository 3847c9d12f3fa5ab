// The ways in which an interpreter keeps the state of a thread, in the shape that CPython's functions have for it.
//
// FORM      1 key in a struct, asked for by functions of its own   2 the same, inlined   3 key in an int
//           4 two thread-local variables   5 like 1, with a thread-local variable beside it
// BEFORE    bytes before the struct
// IMPORTED  the runtime is another object's
#include <pthread.h>
#include <stddef.h>

#ifndef BEFORE
#define BEFORE 1544
#endif

struct slot {
    int made;
    pthread_key_t key;
};

struct state {
    long of_no_interest[17];
    int counter;
};

struct runtime {
    char before[BEFORE];
    struct slot of_thread;
    char between[4000];
    int checks;
    struct state *current;
    void *interpreter;
};

#ifdef IMPORTED
extern struct runtime _PyRuntime;
#else
struct runtime _PyRuntime = {.checks = 1};
#endif

// keeps another variable before it, and what the linker makes of the file realistic
__thread long of_somebody_else = 7;

#if FORM == 1 || FORM == 5
__attribute__((noinline)) void *PyThread_tss_get(struct slot *slot) { return pthread_getspecific(slot->key); }
__attribute__((noinline)) int PyThread_tss_is_created(struct slot *slot) { return slot->made; }
static inline void *state_of_thread(void) { return PyThread_tss_get(&_PyRuntime.of_thread); }
static inline int is_made(void) { return PyThread_tss_is_created(&_PyRuntime.of_thread); }
#elif FORM == 2
static inline void *state_of_thread(void) { return pthread_getspecific(_PyRuntime.of_thread.key); }
static inline int is_made(void) { return _PyRuntime.of_thread.made; }
#elif FORM == 3
static int autoTLSkey = -1;
__attribute__((noinline)) void *PyThread_get_key_value(int key) { return pthread_getspecific(key); }
static inline void *state_of_thread(void) { return PyThread_get_key_value(autoTLSkey); }
static inline int is_made(void) { return autoTLSkey != -1; }
#elif FORM == 4
__thread struct state *_Py_tss_gilstate;
static inline void *state_of_thread(void) { return _Py_tss_gilstate; }
static inline int is_made(void) { return 1; }
#endif

#if FORM == 4 || FORM == 5
__thread struct state *_Py_tss_tstate;
static inline struct state *current(void) { return _Py_tss_tstate; }
#else
static inline struct state *current(void) { return _PyRuntime.current; }
#endif

__attribute__((noinline)) struct state *PyThreadState_New(void *interpreter) {
    static struct state state;
    return interpreter ? &state : NULL;
}
__attribute__((noinline)) void PyThreadState_Clear(struct state *state) { state->of_no_interest[3] = 0; }
__attribute__((noinline)) void PyEval_RestoreThread(struct state *state) { _PyRuntime.current = state; }
__attribute__((noinline)) void PyEval_SaveThread(void) { _PyRuntime.current = NULL; }
__attribute__((noinline, noreturn)) void Py_FatalError(const char *text) {
    _PyRuntime.interpreter = (void *)text;
    __builtin_trap();
}

// nothing that is never written stays a variable
void begin(int key) {
    _PyRuntime.of_thread.key = key;
    _PyRuntime.of_thread.made = 1;
#if FORM == 3
    autoTLSkey = key;
#elif FORM == 4
    _Py_tss_gilstate = PyThreadState_New(_PyRuntime.interpreter);
#endif
}

struct state *PyGILState_GetThisThreadState(void) {
#if FORM != 4
    if (!is_made())
        return NULL;
#endif
    return state_of_thread();
}

int PyGILState_Check(void) {
    if (!_PyRuntime.checks)
        return 1;
    if (!is_made())
        return 1;
    struct state *holder = current();
    if (holder == NULL)
        return 0;
    return holder == state_of_thread();
}

int PyGILState_Ensure(void) {
    struct state *own = state_of_thread();
    int holds;
    if (own == NULL) {
        own = PyThreadState_New(_PyRuntime.interpreter);
        if (own == NULL)
            Py_FatalError("no state for this thread");
        own->counter = 0;
#if FORM == 4
        _Py_tss_gilstate = own;
#endif
        holds = 0;
    } else {
        holds = own == current();
    }
    if (!holds)
        PyEval_RestoreThread(own);
    ++own->counter;
    return holds ? 0 : 1;
}

void PyGILState_Release(int before) {
    struct state *own = state_of_thread();
    if (own == NULL)
        Py_FatalError("no state");
    if (own != current())
        Py_FatalError("another thread has the lock");
    --own->counter;
    if (own->counter == 0) {
        PyThreadState_Clear(own);
        PyEval_SaveThread();
    } else if (before == 1) {
        PyEval_SaveThread();
    }
}

// what makes it look like an interpreter, of 3.12.1 or of 3.6.15
__attribute__((noinline)) void *_PyEval_EvalFrameDefault(void *frame) { return frame ? _PyRuntime.interpreter : NULL; }
#ifdef __clang__
__attribute__((noinline))
#else
__attribute__((noipa))
#endif
int PyOS_snprintf(char *into, size_t size, const char *format, const char *version) {
    for (size_t at = 0; at < size && version[at]; at++)
        into[at] = version[at];
    return format[0];
}
const char *Py_GetVersion(void) {
    static char text[250];
#if FORM == 3
    PyOS_snprintf(text, sizeof text, "%.80s", "3.6.15+");
#else
    PyOS_snprintf(text, sizeof text, "%.80s", "3.12.1");
#endif
    return text;
}

#ifdef MAIN
#include <stdio.h>
int main(int count, char **arguments) {
    char *thread;
    pthread_key_t key;
    if (count > 1 && pthread_key_create(&key, NULL) == 0)
        begin(key);
#ifdef __x86_64__
    __asm__("mov %%fs:0,%0" : "=r"(thread));
#else
    thread = __builtin_thread_pointer();
#endif
    // each is called once from here, so that no argument is the only one
    printf("%d %d\n", PyGILState_Check(), _PyEval_EvalFrameDefault(NULL) == NULL);
#if FORM == 4
    printf("distance %ld\n", (long)((char *)&_Py_tss_gilstate - thread));
#endif
    return of_somebody_else == 7 && thread && Py_GetVersion()[0] == '3' ? 0 : 1;
}
#endif
